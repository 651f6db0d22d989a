"""Lessons at chosen places of the embedding space: how near two of them are is said, not left to a model."""

from collections.abc import Callable
from itertools import count
from uuid import UUID

import numpy as np
from pgvector import HalfVector

from memory.embedding import Vectors
from memory.models import EmbeddingSpace, Lesson, LessonEmbedding

Place = Callable[..., Lesson]
AXES = 100  # that something can be near to; each has a plane of its own, in which what is near it is spread
GOLDEN = np.pi * (3 - np.sqrt(5))  # radians: multiples of it spread evenly
_turns = count()


def vector(cosine: float, dimension: int, axis: int = 0) -> Vectors:
    """A unit vector with this cosine to an axis.

    Two of them on one axis are about as near to each other, and no two are equal: a graph index does not forget rows
    that another test has rolled back, and in a crowd of equal or equidistant ones it may lose the one that is there.
    """
    made = np.zeros(dimension, dtype=np.float32)
    made[axis] = min(cosine, 0.999999)
    turn, aside = GOLDEN * next(_turns), np.sqrt(1 - made[axis] ** 2)
    made[AXES + 2 * axis], made[AXES + 2 * axis + 1] = aside * np.cos(turn), aside * np.sin(turn)
    return made


def place(lesson: Lesson, space: EmbeddingSpace, cosine: float, axis: int = 0) -> Lesson:
    """Gives a lesson a vector with this cosine to an axis, in place of the one that it has."""
    put(lesson, space, vector(cosine, space.dimension, axis))
    return lesson


def put(lesson: Lesson, space: EmbeddingSpace, made: Vectors) -> None:
    """Gives a lesson a vector."""
    LessonEmbedding.objects.filter(lesson=lesson, space=space).delete()
    LessonEmbedding.objects.create(lesson=lesson, space=space, embedding=HalfVector(made))


def state_of(lesson: UUID) -> str:
    return str(Lesson.objects.get(pk=lesson).state)
