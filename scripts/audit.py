"""Asks PyPI's advisories about every package that a lock file pins, with pip-audit: `python -m scripts.audit`.

Ends with 1 if a package has a known vulnerability. Where PyPI does not answer, nothing is known: that is told loudly,
and is no failure, so that a machine without the internet can build what it has.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

LOCK: Final = Path(__file__).resolve().parent.parent / "requirements.lock"
#: A release with known vulnerabilities: whoever tells of none of them, a mirror for example, knows no advisories.
PROBE: Final = "https://pypi.org/pypi/django/2.0/json"
PROBE_SECONDS: Final = 5.0
AUDIT_SECONDS: Final = 120.0
RULE: Final = "=" * 100
#: What pip-audit says when the network is in the way, and not the lock file.
AWAY: Final = ("ConnectionError", "Could not connect", "Timeout", "timed out", "Max retries", "SSLError", "ProxyError")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of an audit."""

    code: int  # exit status: 0, or 1 for a known vulnerability, or 2 for an audit that could not be made sense of
    words: str  # for whoever reads the log of a build


def unknown(why: str) -> Verdict:
    """Nothing was found out."""
    words = f"THE PACKAGES WERE NOT AUDITED: {why}\nRun `make audit` where https://pypi.org answers, before a release."
    return Verdict(code=0, words=f"{RULE}\n{words}\n{RULE}")


def verdict(answer: str, complaints: str) -> Verdict:
    """Of pip-audit's JSON and of what it wrote to standard error."""
    try:
        packages: list[dict[str, Any]] = json.loads(answer)["dependencies"]
    except (ValueError, KeyError):
        if any(word in complaints for word in AWAY):
            return unknown("PyPI stopped answering.")
        return Verdict(code=2, words=f"pip-audit failed:\n{complaints}")
    found = [f"  {_named(package)}: {_advice(each)}" for package in packages for each in package.get("vulns", [])]
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    if found:
        return Verdict(code=1, words="\n".join([f"Known vulnerabilities: {len(found)}", *found]))
    if len(skipped) == len(packages):
        return unknown("PyPI knows none of them.")
    told = f"{len(packages) - len(skipped)} packages audited, no known vulnerability."
    return Verdict(code=0, words=told + (f" Not on PyPI, so unknown: {', '.join(skipped)}." if skipped else ""))


def _named(package: dict[str, Any]) -> str:
    return f"{package['name']} {package['version']}"


def _advice(vulnerability: dict[str, Any]) -> str:
    mended = ", ".join(vulnerability.get("fix_versions", [])) or "no version yet"
    return f"{vulnerability['id']}, mended in {mended}"


def answers() -> bool:
    """Whether PyPI tells of vulnerabilities here."""
    try:
        return bool(httpx.get(PROBE, timeout=PROBE_SECONDS, follow_redirects=True).json()["vulnerabilities"])
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return False


def audit(lock: Path) -> Verdict:
    """Of every package that the file pins; nothing is resolved or installed."""
    if not answers():
        return unknown("https://pypi.org tells of no advisories here.")
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--requirement", str(lock)]
    command += ["--format", "json", "--progress-spinner", "off"]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=AUDIT_SECONDS)
    except subprocess.TimeoutExpired:
        return unknown(f"PyPI did not answer in {AUDIT_SECONDS:.0f} s.")
    return verdict(ran.stdout, ran.stderr)


if __name__ == "__main__":
    made = audit(LOCK)
    sys.stdout.write(f"{made.words}\n")
    sys.exit(made.code)
