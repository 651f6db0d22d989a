"""The site's own variables, read so that one that cannot be used is refused with a sentence at the start."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

import environ

from memory.conf import SettingError, parse

ENGINE = "django.db.backends.postgresql"
NO_MAIL: Final = "django.core.mail.backends.dummy.EmailBackend"
MAIL_PORTS: Final = {"smtp+tls": 587, "smtp+ssl": 465, "smtp": 25}
MAIL_SECONDS: Final = 10  # for a mail server that does not answer
#: What may also stand in a file that NAME_FILE names, as containers are given secrets (Docker's own convention).
SECRETS: Final = (
    "SECRET_KEY",
    "DATABASE_URL",
    "CELERY_BROKER_URL",
    "REDIS_URL",
    "SONDER_EMBEDDING_KEY",
    "SONDER_DISTILLER_KEY",
    "SONDER_METRICS_KEY",
    "EMAIL_URL",
)


def with_files(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables, each secret that is named by a file read from it, without the line break at its end.

    Raises SettingError if a file cannot be read or is empty, or if a secret is given both ways.
    """
    found = dict(variables)
    for name in SECRETS:
        path = found.pop(f"{name}_FILE", "")
        if not path:
            continue
        if found.get(name):
            raise SettingError(f"{name} and {name}_FILE are both set; unset one of them.")
        found[name] = _secret_in(path, f"{name}_FILE")
    return found


def _secret_in(path: str, name: str) -> str:
    try:
        value = Path(path).read_text(encoding="utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise SettingError(f"{name} names {path}, which is no text in UTF-8.") from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SettingError(f"{name} names {path}, which cannot be read: {reason}.") from None
    if not value.strip():
        raise SettingError(f"{name} names {path}, which is empty.")
    return value


class Environment:
    """Variables by name, each in its type; an empty one counts as unset. Raises SettingError that names it."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def text(self, name: str) -> str:
        """Any text, or ''."""
        return self._variables.get(name, "")

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        return bool(parse(name, self.text(name), default)) if self.text(name) else default

    def number(self, name: str, default: int, *, low: int, high: int) -> int:
        """A whole number from `low` to `high`."""
        value = parse(name, self.text(name), default) if self.text(name) else default
        if not (isinstance(value, int) and low <= value <= high):
            raise SettingError(f"{name} is {value}; use a number from {low} to {high}.")
        return value

    def level(self, name: str, default: str) -> str:
        """A level of the log."""
        value = (self.text(name) or default).upper()
        if value not in logging.getLevelNamesMapping():
            raise SettingError(f"{name} is {self.text(name)!r}; choose one of DEBUG, INFO, WARNING, ERROR, CRITICAL.")
        return value

    def words(self, name: str, default: list[str]) -> list[str]:
        """What stands between commas."""
        return [word for part in self.text(name).split(",") if (word := part.strip())] if self.text(name) else default

    def origins(self, name: str) -> list[str]:
        """Origins, each a scheme and a host."""
        found = self.words(name, [])
        for origin in found:
            parts = _split(origin)
            if parts is None or parts.scheme not in {"http", "https"} or not parts.netloc or parts.path:
                raise SettingError(f"{name} has {origin!r}; write origins as in https://sonder.example.com.")
        return found

    def address(self, name: str, *schemes: str) -> str:
        """The address of a server, or ''. It is not repeated in the refusal: addresses hold passwords."""
        value = self.text(name).strip()
        parts = _split(value)
        if value and (parts is None or parts.scheme not in schemes):
            beginnings = " or ".join(f"{scheme}://" for scheme in schemes)
            raise SettingError(f"{name} is no address that can be used; it begins with {beginnings}.")
        return value

    def database(self, name: str, var: str) -> dict[str, Any]:
        """Django's settings of the PostgreSQL at that address, or of the embedded one in `var`."""
        url = self.address(name, "postgres", "postgresql")
        if not url:
            return {"ENGINE": "sonder_site.embedded", "NAME": "sonder", "VAR": var}
        config: dict[str, Any] = environ.Env.db_url_config(url, engine=ENGINE)
        if not config.get("NAME"):
            raise SettingError(f"{name} names no database; write it as postgres://user:password@host:port/name.")
        return config

    def mail(self, name: str) -> dict[str, Any]:
        """Django's settings of the mail server at that address; without one no mail is sent."""
        url = self.address(name, *MAIL_PORTS)
        if not url:
            return {"EMAIL_BACKEND": NO_MAIL}
        parts = urlsplit(url)
        if not parts.hostname:
            raise SettingError(f"{name} names no host; write it as smtp+tls://user:password@host:587.")
        return {
            "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
            "EMAIL_HOST": parts.hostname,
            "EMAIL_PORT": parts.port or MAIL_PORTS[parts.scheme],
            "EMAIL_HOST_USER": unquote(parts.username or ""),
            "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
            "EMAIL_USE_TLS": parts.scheme == "smtp+tls",
            "EMAIL_USE_SSL": parts.scheme == "smtp+ssl",
        }

    def secret(self, name: str) -> str:
        """A secret, or '' where it is not set."""
        value = self.text(name)
        if value and not value.strip():
            raise SettingError(f"{name} is blank; set it to a long random text, or leave it unset.")
        return value


def _split(value: str) -> SplitResult | None:
    """The parts of an address, or None if it is none: also its port is looked at."""
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        return None
    return parts
