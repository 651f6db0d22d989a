"""Withheld interactions are counted, and summed by why they were withheld.

The key is another one, so the table is made anew; the next migration fills it from the stored rows.
"""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0001_initial")]

    operations = [
        migrations.DeleteModel(name="WithheldSum"),
        migrations.CreateModel(
            name="WithheldSum",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "exposure",
                    models.CharField(
                        choices=[
                            ("withheld_trial", "left out by the coin of a trial"),
                            ("withheld_quarantine", "left out by quarantine"),
                        ],
                        max_length=20,
                    ),
                ),
                ("n", models.BigIntegerField()),
                ("o", models.DecimalField(decimal_places=15, max_digits=30)),
                ("e", models.DecimalField(decimal_places=15, max_digits=30)),
                (
                    "lesson",
                    models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, to="memory.lesson"),
                ),
            ],
            options={
                "db_table": "withheld_sum",
                "constraints": [
                    models.UniqueConstraint(fields=("lesson", "exposure"), name="withheld_sum_key_unique"),
                    models.CheckConstraint(
                        condition=models.Q(("exposure__in", ["withheld_trial", "withheld_quarantine"])),
                        name="withheld_sum_exposure_vocabulary",
                        violation_error_message="exposure must be one of withheld_trial, withheld_quarantine.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("n__gte", 0)),
                        name="withheld_sum_n_at_least",
                        violation_error_message="n must be at least 0.",
                    ),
                ],
            },
        ),
    ]
