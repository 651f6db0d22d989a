"""Moving to another embedding model, or filling in what is missing."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from memory.errors import EmbeddingUnavailable
from memory.management.output import as_json, progress
from memory.models import EmbeddingSpace, Lesson, LessonEmbedding
from memory.services import space as spaces
from memory.services import tombstone


class Command(BaseCommand):
    help = (
        "Embeds every lesson in the space of the configured model (SONDER_EMBEDDING) and then searches that space. "
        "Can be interrupted and run again; retrieval goes on in the old space until the new one is complete."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--drop-old", action="store_true", help="delete the vectors of all other spaces at the end")
        parser.add_argument("--json", action="store_true")

    def handle(self, **options: Any) -> None:
        try:
            space = spaces.configured_space()
            spaces.build_indexes(space)
            spaces.unpark(space)
            embedded = self._fill(space)
        except EmbeddingUnavailable as refusal:
            raise CommandError(f"{refusal.detail} What is embedded already stays; run this again.") from None
        followed = spaces.activate(space)
        refused = sorted(str(pk) for pk in spaces.parked(space))
        dropped = 0
        if options["drop_old"]:
            dropped = LessonEmbedding.objects.exclude(space=space).delete()[0]
        told = {
            "space": str(space),
            "embedded": embedded,
            "refused": refused,
            "tombstones": followed,
            "tombstones_left": tombstone.left_behind(space),
            "dropped": dropped,
        }
        if options["json"]:
            as_json(self, told)
        else:
            self._tell(told)

    def _tell(self, told: dict[str, Any]) -> None:
        self.stdout.write(
            f"{told['embedded']} lessons embedded; {told['space']} is active; {told['dropped']} old vectors dropped."
        )
        self.stdout.write(f"{told['tombstones']} tombstones followed; {told['tombstones_left']} have no vector in it.")
        if told["refused"]:
            self.stdout.write(f"The model refused, and words alone find: {', '.join(told['refused'])}.")

    def _fill(self, space: EmbeddingSpace) -> int:
        embedded = 0
        with progress() as bar:
            have = LessonEmbedding.objects.filter(space=space).count()
            shown = bar.add_task("lessons", total=Lesson.objects.count(), completed=have)
            while batch := spaces.missing(space, spaces.BATCH):
                embedded += spaces.embed(batch, space)
                bar.update(shown, completed=have + embedded)
        return embedded
