"""Writes the table of SONDER_ settings in docs/settings.md from memory/conf.py: `python -m scripts.settings_table`."""

from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from memory.conf import PREFIX, Conf

PAGE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"
START, END = "<!-- settings: start -->\n", "<!-- settings: end -->\n"


def table() -> str:
    """Every setting in the order of `Conf`: name, default, what it may be, and the reason for the default."""
    rows = ["| setting | default | may be | meaning and reason |", "| --- | --- | --- | --- |"]
    rows += [f"| `{_name(f)}` | {_default(f)} | {_range(f)} | {f.metadata['reason']} |" for f in fields(Conf)]
    return "\n".join(rows) + "\n"


def page_with_table(page: str) -> str:
    """The page with the table between its two marks replaced."""
    before, rest = page.split(START)
    _, after = rest.split(END)
    return f"{before}{START}{table()}{END}{after}"


def _name(field: Field[Any]) -> str:
    return PREFIX + field.name.upper()


def _default(field: Field[Any]) -> str:
    value = str(field.default).lower() if isinstance(field.default, bool) else str(field.default)
    return f"`{value}`" if value else "empty"


def _range(field: Field[Any]) -> str:
    low, high, choices = (field.metadata[name] for name in ("low", "high", "choices"))
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices)
    if isinstance(field.default, bool):
        return "`true`, `false`"
    if high is not None:
        return f"{low} to {high}"
    return f"{low} or more" if low is not None else "text"


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
