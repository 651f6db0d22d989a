"""Accounts in files: written, changed, read again, and the installation elsewhere that knows nothing yet."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

from django.apps import apps
from django.core.management import call_command

from memory.models import Account
from memory.models.sql import execute
from memory.services.transfer.writing import export

Lines = list[dict[str, Any]]


def exported(account: Account) -> Lines:
    """Every line of an account's file."""
    out = StringIO()
    for _ in export(account, out.write):
        pass
    return [json.loads(line) for line in out.getvalue().splitlines()]


def to_file(folder: Path, lines: Lines) -> Path:
    """The lines in a file, with the trailer that belongs to them."""
    path = folder / "account.ndjson"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def counted(lines: Lines) -> Lines:
    """With the counts of the rows that there are now."""
    counts: dict[str, int] = {}
    for line in lines[1:-1]:
        counts[line["kind"]] = counts.get(line["kind"], 0) + 1
    return [*lines[:-1], {"kind": "trailer", "row": {"counts": counts}}]


def imported(path: Path) -> dict[str, Any]:
    """The report of the command; of every kind the counts add up to its rows."""
    out = StringIO()
    call_command("import_account", str(path), "--json", stdout=out)
    report: dict[str, Any] = json.loads(out.getvalue())
    for name, kind in report["kinds"].items():
        assert kind["imported"] + kind["already"] + sum(kind["skipped"].values()) == kind["rows"], name
    return report


def arrived(report: dict[str, Any]) -> dict[str, int]:
    """How many rows of each kind came in."""
    return {name: kind["imported"] for name, kind in report["kinds"].items() if kind["imported"]}


def stayed_out(report: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Why rows of each kind did not."""
    return {name: kind["skipped"] for name, kind in report["kinds"].items() if kind["skipped"]}


def elsewhere() -> None:
    """From here on this is another installation: it has its embedding space and nothing else."""
    execute("SET CONSTRAINTS ALL IMMEDIATE")
    execute("SET CONSTRAINTS ALL DEFERRED")
    tables = {model._meta.db_table for model in apps.get_app_config("memory").get_models()} - {"embedding_space"}
    execute(f"TRUNCATE {', '.join(sorted(tables))}, auth_user CASCADE")
