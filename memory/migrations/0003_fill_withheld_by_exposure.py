"""The sums of withheld interactions, from the stored rows."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def fill(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    editor.execute(
        """
        INSERT INTO withheld_sum (lesson_id, exposure, n, o, e)
        SELECT u.lesson_id, u.exposure, count(*), sum(c.y), sum(u.expected_loss)
        FROM credit c JOIN lesson_usage u ON u.interaction_id = c.interaction_id
        WHERE c.outcome_id IS NOT NULL AND c.weight > 0 AND u.exposure IN ('withheld_trial', 'withheld_quarantine')
        GROUP BY 1, 2
        """
    )


class Migration(migrations.Migration):
    dependencies = [("memory", "0002_withheld_by_exposure")]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
