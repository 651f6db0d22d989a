"""Vectors of the file, each kept in the embedding space of the model that made it and in no other."""

from dataclasses import asdict, dataclass
from typing import Any, Final

from pgvector import HalfVector

from memory.embedding import Vectors
from memory.embedding.presets import preset_for
from memory.models import EmbeddingSpace
from memory.models.lesson import SIMILARITIES
from memory.services.sonder import values
from memory.services.sonder.job import Job
from memory.services.sonder.snapshot import Row
from memory.services.sonder.values import Skipped

UNLABELLED: Final = "unlabelled"  # the revision of a model that nobody labelled, as the providers here call it


@dataclass(frozen=True, kw_only=True)
class Written:
    """What a row says of a vector."""

    blob: Any
    model: Any
    revision: Any
    dimension: Any


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A sound vector in its space."""

    unit: Vectors  # unit vector
    space: EmbeddingSpace

    @property
    def vector(self) -> HalfVector:
        """As a column takes it."""
        return HalfVector(self.unit)


def vector_of(row: Row, column: str, dimension: str = "embedding_dim") -> Written:
    """A row's vector with its provenance."""
    return Written(
        blob=row.get(column),
        model=row.get(f"{column}_model"),
        revision=row.get(f"{column}_revision"),
        dimension=row.get(dimension),
    )


def placed(job: Job, written: Written) -> Placed | None:
    """The vector in its space, which is opened for it if need be; None if there is none, or it cannot be trusted."""
    if written.blob is None:
        return None
    try:
        model, revision = _provenance(written)
        unit = values.vector(written.blob, written.dimension)
    except Skipped as why:
        job.report.vectors[why.reason] += 1
        return None
    job.report.vectors["kept"] += 1
    return Placed(unit=unit, space=_space(job, model, revision, len(unit)))


def _provenance(written: Written) -> tuple[str, str]:
    """Model and revision. Raises Skipped: a vector that could be of any model is no evidence."""
    model, revision = values.said(written.model).strip(), values.said(written.revision).strip()
    if not model:
        raise Skipped("no_model")
    if len(model) > 200 or len(revision) > 100:
        raise Skipped("bad_value")
    return model, revision or UNLABELLED


def _space(job: Job, model: str, revision: str, dimension: int) -> EmbeddingSpace:
    """A space of its own; not searched until the model that it belongs to is the configured one."""
    preset = asdict(preset_for(model))
    space, _ = EmbeddingSpace.objects.get_or_create(
        model=model,
        revision=revision,
        dimension=dimension,
        defaults={
            **{name: preset[name] for name in SIMILARITIES},
            "gate": preset["support_gate"],
            "is_active": False,
        },
    )
    if str(space) not in job.report.spaces:
        job.report.spaces.append(str(space))
    return space
