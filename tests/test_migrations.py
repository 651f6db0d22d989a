"""The schema's history: complete, readable, independent of the code, and what the database really has."""

import ast
import re
from pathlib import Path

import pgtrigger
import pytest
from django.core.management import call_command
from django.db import connection, migrations
from django.db.migrations.loader import MigrationLoader
from pgtrigger import registered

from memory import migrations as package

FOLDER = Path(package.__file__).parent
FILES = sorted(path for path in FOLDER.glob("*.py") if path.name != "__init__.py")
NAME = re.compile(r"\d{4}_(?!auto_|alter_\d|.*_and_more$)[a-z]\w{3,}")  # what makemigrations makes up is no name
DATA = (migrations.RunPython,)
APP_CODE = {"memory", "sonder_site", "evaluation"}

DATA_MIGRATION_WITH_APP_CODE = """
from django.db import migrations
from memory.services.credit import sweep

class Migration(migrations.Migration):
    operations = [migrations.RunPython(lambda apps, editor: sweep())]
"""


def runs_python(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr == "RunPython" for node in ast.walk(tree))


def app_code(tree: ast.Module) -> list[str]:
    """What a migration imports of the product."""
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return [name for name in names if name.split(".")[0] in APP_CODE]


@pytest.mark.django_db
def test_no_migration_is_missing() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_every_migration_is_named_for_its_change_and_numbered_in_order() -> None:
    assert [path.name for path in FILES if not NAME.fullmatch(path.stem)] == []
    assert [int(path.name[:4]) for path in FILES] == list(range(1, len(FILES) + 1))


@pytest.mark.parametrize("made_up", ["0002_auto_20260101_1200", "0002_alter_0003", "0002_lesson_text_and_more"])
def test_a_name_that_was_made_up_is_none(made_up: str) -> None:
    assert NAME.fullmatch(made_up) is None


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_migration_of_data_imports_no_code_of_the_product(path: Path) -> None:
    """That code will have changed by the time the migration runs."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not runs_python(tree) or app_code(tree) == []


def test_a_migration_of_data_that_imports_code_would_be_seen() -> None:
    tree = ast.parse(DATA_MIGRATION_WITH_APP_CODE)
    assert (runs_python(tree), app_code(tree)) == (True, ["memory.services.credit"])


def test_schema_and_data_change_in_separate_migrations() -> None:
    loaded = [m for (app, _), m in MigrationLoader(None).disk_migrations.items() if app == "memory"]
    kinds = [{isinstance(operation, DATA) for operation in migration.operations} for migration in loaded]
    assert len(loaded) == len(FILES)
    assert [migration.name for migration, kind in zip(loaded, kinds, strict=True) if len(kind) > 1] == []


def installed() -> dict[str, tuple[str, str]]:
    """Every trigger and its function, as PostgreSQL tells them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.tgname, pg_get_triggerdef(t.oid), pg_get_functiondef(t.tgfoid) FROM pg_trigger t"
            " JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE NOT t.tgisinternal AND n.nspname = current_schema()"
        )
        return {name: (trigger, function) for name, trigger, function in cursor.fetchall()}


@pytest.mark.django_db
def test_the_migrations_install_exactly_the_triggers_that_the_models_declare() -> None:
    migrated = installed()
    assert set(migrated) == {trigger.get_pgid(model) for model, trigger in registered()}
    for model, trigger in registered():
        trigger.install(model)
    assert installed() == migrated


@pytest.mark.django_db
def test_every_trigger_is_enabled_and_up_to_date() -> None:
    states = {trigger.get_pgid(model): trigger.get_installation_status(model) for model, trigger in registered()}
    assert {name: state for name, state in states.items() if state != (pgtrigger.core.INSTALLED, True)} == {}
