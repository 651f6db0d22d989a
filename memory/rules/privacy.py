"""What must never enter the memory: secrets, addresses of people, and paths that name a person."""

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal, get_args

from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.filters import heuristic
from detect_secrets.plugins.base import BasePlugin
from detect_secrets.plugins.high_entropy_strings import HighEntropyStringsPlugin
from detect_secrets.plugins.ip_public import IPPublicDetector
from detect_secrets.plugins.keyword import KeywordDetector

from memory.rules.text import legible

PrivateKind = Literal["secret", "email", "home_path", "token"]
KINDS: Final[tuple[PrivateKind, ...]] = get_args(PrivateKind)

#: Every detector of the library but public IP addresses: an address is no secret, and 0.0.0.0 or a version of four
#: parts is not even an address. They are used one by one, without the library's global settings: `analyze_string` is
#: a pure function, safe in threads, while scanning a file or line would read settings and may verify over the network.
_LIBRARY: Final[Mapping[str, type[BasePlugin]]] = get_mapping_from_secret_type_to_class()
_DETECTORS: Final = tuple(detector() for detector in _LIBRARY.values() if detector is not IPPublicDetector)
#: The keyword detector backtracks: its time grows with the square of a line's length, so it sees overlapping windows.
_WINDOW: Final = 200
_STRIDE: Final = 100

_EMAIL: Final = re.compile(r"(?<![\w.+-])(?!git@)[\w.+-]+@(?:[\w-]+\.)+[a-z]{2,24}\b(?!\()", re.IGNORECASE)
_HOME_PATH: Final = re.compile(
    r"(?<![\w.])(?:/(?:home|Users)/[\w.-]+|/root/[\w.-]"
    r"|[A-Za-z]:[\\/]{1,2}(?:Users|Documents and Settings)[\\/]{1,2}\w)"
)
_TOKEN: Final = re.compile(
    r"""\b(?:
        sonder_[a-z0-9]{12}_[\w-]{43}                               # this product's own
      | sk-(?=[\w-]*\d)[\w-]{16,}                                   # OpenAI, Anthropic and their kind
      | (?:sk|pk|rk)_(?:live|test)_\w{16,}                          # Stripe
      | gh[oprsu]_\w{20,} | github_pat_\w{20,} | glpat-[\w-]{16,}
      | (?:AKIA|ASIA)[0-9A-Z]{16}                                   # AWS
      | AIza[\w-]{30,} | ya29\.[\w-]{20,} | GOCSPX-[\w-]{20,}       # Google
      | xox[abeoprs]-[\w-]{10,} | xapp-\d-[\w-]{20,}               # Slack
      | hf_[A-Za-z0-9]{20,} | npm_[A-Za-z0-9]{30,} | pypi-[\w-]{40,}
      | whsec_[A-Za-z0-9+/]{24,}                                   # Standard Webhooks, Stripe
      | do[opr]_v1_[0-9a-f]{64} | dapi[0-9a-f]{32} | sbp_[0-9a-f]{40} | shp(?:at|ca|pa|ss)_[0-9a-f]{32}
      | hv[sb]\.[\w-]{20,} | lin_api_\w{30,} | ntn_\w{40,} | dckr_pat_[\w-]{20,} | tskey-[a-z]+-[\w-]{20,}
      | key-[0-9a-f]{32} | AGE-SECRET-KEY-1[0-9A-Z]{58}
      | eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?                        # JSON Web Token
    ) | \b(?:[Bb]earer|Authorization:\s*Basic)\s+(?=[\w.~+/-]*\d)[\w.~+/-]{16,}""",
    re.VERBOSE,
)
_PRIVATE_KEY: Final = re.compile(r"-----BEGIN\s(?:[A-Z]+\s)*PRIVATE\sKEY")
#: `password=s3cretvalue` without quotes, which the keyword detector leaves alone. A call or a name is no value.
_ASSIGNMENT: Final = re.compile(
    r"""\b\w*(?:password|passwd|pwd|secret|api[_-]?key|access[_-]?key|token)\w*\s*[=:]\s*["'`]?
      (?=[^\s"'`]*\d)(?=[^\s"'`]*[A-Za-z])[\w+/!@\#%^&*~-]{8,}=*(?![\w.(\[{<$])""",
    re.VERBOSE | re.IGNORECASE,
)


def find_private(text: str) -> tuple[PrivateKind, ...]:
    """The kinds of private matter in a text, in the order of `KINDS`; empty if there is none.

    The matched text is not returned, so that it cannot reach a log or a row. Invisible characters and look-alike
    letters do not hide it.
    """
    plain = legible(text)
    found: dict[PrivateKind, bool] = {
        "secret": _has_secret(plain),
        "email": bool(_EMAIL.search(plain)),
        "home_path": bool(_HOME_PATH.search(plain)),
        "token": bool(_TOKEN.search(plain)),
    }
    return tuple(kind for kind in KINDS if found[kind])


def _has_secret(text: str) -> bool:
    if _PRIVATE_KEY.search(text) or _ASSIGNMENT.search(text):
        return True
    return any(_is_secret(detector, line) for line in text.splitlines() for detector in _DETECTORS)


def _is_secret(detector: BasePlugin, line: str) -> bool:
    parts = _windows(line) if isinstance(detector, KeywordDetector) else (line,)
    for part in parts:
        for value in detector.analyze_string(part):
            if not isinstance(detector, HighEntropyStringsPlugin | KeywordDetector):
                return True
            if not _is_harmless(value) and _is_random_enough(detector, value):
                return True
    return False


def _windows(line: str) -> Iterator[str]:
    for start in range(0, max(1, len(line) - _STRIDE), _STRIDE):
        yield line[start : start + _WINDOW]


def _is_harmless(value: str) -> bool:
    """The library's own filters for values that only look secret: templates, sequences, identifiers."""
    return (
        heuristic.is_templated_secret(value)
        or heuristic.is_sequential_string(value)
        or heuristic.is_potential_uuid(value)
        or heuristic.is_not_alphanumeric_string(value)
        or heuristic.is_prefixed_with_dollar_sign(value)
    )


def _is_random_enough(detector: BasePlugin, value: str) -> bool:
    if not isinstance(detector, HighEntropyStringsPlugin):
        return True
    return bool(detector.calculate_shannon_entropy(value) > detector.entropy_limit)
