"""The ids that are named in the answers kept so far."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def fill(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    editor.execute(
        """
        UPDATE idempotency_record SET names = ARRAY(
            SELECT DISTINCT (found[1])::uuid
            FROM regexp_matches(response::text, '([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})', 'gi') AS found
        ) WHERE response IS NOT NULL
        """
    )


class Migration(migrations.Migration):
    dependencies = [("memory", "0006_index_kept_answers")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
