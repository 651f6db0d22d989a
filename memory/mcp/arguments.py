"""What a tool may be told. Whose account it is and who judges are in the key and never among the arguments."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Self
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import ErrorDetails, PydanticCustomError
from rest_framework import exceptions

from memory.models.scope import SLUG, SLUG_WORDS
from memory.rules.signals import SIGNALS

MAX_TASK: Final = 20_000  # characters
MAX_RESPONSE: Final = 200_000
MAX_DETAIL: Final = 10_000
MAX_COUNT: Final = 2_147_483_647
MAX_NAMED: Final = 20  # wrong names repeated in one answer
MAX_NAME: Final = 80  # characters of a caller's own name for an argument that are repeated to it

UNSTORABLE: Final = "holds a NUL character or half of a surrogate pair, which no database keeps. Leave it out."
SHAPES: Final = {
    "project": f"use {SLUG_WORDS}.",
    "idempotency_key": "use 1 to 200 printable ASCII characters.",
}


def _without_nul(value: str) -> str:
    if "\0" in value:
        raise PydanticCustomError("unstorable", UNSTORABLE)
    return value


STORABLE: Final = AfterValidator(_without_nul)  # pydantic itself refuses surrogates
Nothing = SkipJsonSchema[None]  # as good as leaving it out, which is what the schema says

Label = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), STORABLE]
Slug = Annotated[str, StringConstraints(pattern=SLUG)]
Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]

PROJECT: Final = f"Slug of the project you work on: {SLUG_WORDS}."
Project = Annotated[Slug | Nothing, Field(description=PROJECT)]
Task = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TASK),
    STORABLE,
    Field(description="What is to be done, in words, as specific as you know it: it is searched with."),
]
K = Annotated[int, Field(ge=1, le=50, description="How many lessons at most.")]
InteractionId = Annotated[UUID, Field(strict=False, description="`interaction_id` that start_interaction answered.")]


class Arguments(BaseModel):
    """Refuses what it does not know: a misspelt argument must never be dropped in silence."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @classmethod
    def read(cls, given: Mapping[str, object]) -> Self:
        """The arguments, or DRF's ValidationError that names each wrong one."""
        try:
            return cls.model_validate(given)
        except ValidationError as refusal:
            raise exceptions.ValidationError(cls._sentences(refusal)) from None

    @classmethod
    def described(cls) -> dict[str, Any]:
        """JSON Schema 2020-12, without what says nothing: titles, and null as a default."""
        schema = cls.model_json_schema()
        del schema["title"]
        schema["properties"] = {name: schema["properties"][name] for name in cls.names()}
        for field in schema["properties"].values():
            field.pop("title", None)
            if field.get("default", ...) is None:
                del field["default"]
        return schema

    @classmethod
    def names(cls) -> list[str]:
        """The arguments, what the call is about before how to repeat it."""
        return sorted(cls.model_fields, key=lambda name: name == "idempotency_key")

    @classmethod
    def _sentences(cls, refusal: ValidationError) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for error in refusal.errors(include_url=False, include_input=False):
            name = _shown(str(error["loc"][0]))
            if error["type"] != "none_required":  # the other half of an optional argument
                found[name] = [cls._sentence(name, error)]
        return dict(list(found.items())[:MAX_NAMED])

    @classmethod
    def _sentence(cls, name: str, error: ErrorDetails) -> str:
        match error["type"]:
            case "extra_forbidden":
                return f"is no argument of this tool; it knows {', '.join(cls.names())}."
            case "string_unicode":
                return UNSTORABLE
            case "missing":
                return "is required."
            case "too_short" | "string_too_short":
                return "is empty."
            case "too_long" | "string_too_long":
                return f"is longer than {error['ctx']['max_length']} characters."
            case "string_pattern_mismatch":
                return SHAPES[name]
            case "uuid_parsing" | "uuid_type":
                return "is no id. Give the interaction_id that start_interaction answered."
        return f"{error['msg'].removesuffix('.')}."


def _shown(name: str) -> str:
    short = name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…"
    return short.encode("utf-8", "backslashreplace").decode()


class Write(Arguments):
    """What changes something, and may have to be repeated when the answer was lost."""

    idempotency_key: Annotated[
        Annotated[str, StringConstraints(pattern=r"^[\x20-\x7e]{1,200}$")] | Nothing,
        Field(
            description="Any unique text, 1 to 200 ASCII characters. If no answer arrives, call again with the same "
            "arguments and the same key: it is done once, and you get the first answer.",
        ),
    ] = None


class StartArguments(Write):
    task: Task
    project: Project = None
    session: Annotated[
        Label | Nothing,
        Field(description="Your own id of this conversation, so that its interactions are found together."),
    ] = None
    k: K = 5
    model: Annotated[
        Annotated[str, StringConstraints(strip_whitespace=True, max_length=200), STORABLE] | Nothing,
        Field(description="The model that does the work."),
    ] = None


class FinishArguments(Write):
    interaction_id: InteractionId
    response: Annotated[
        Annotated[str, StringConstraints(max_length=MAX_RESPONSE), STORABLE] | Nothing,
        Field(description="What you answered or changed, and what you found out on the way: lessons come from this."),
    ] = None
    tokens_in: Annotated[Count | Nothing, Field(description="Tokens of the prompt, if you know.")] = None
    tokens_out: Annotated[Count | Nothing, Field(description="Tokens of the answer, if you know.")] = None


class OutcomeArguments(Write):
    interaction_id: InteractionId
    signal: Annotated[
        str,
        STORABLE,
        Field(
            json_schema_extra={"enum": list(SIGNALS)},
            description="What happened: tests_passed; used, copied or accepted as it was; edited before it was used; "
            "compiled, and nothing more is known; rejected by someone; failed; retracted takes back what you said.",
        ),
    ]
    detail: Annotated[
        Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_DETAIL), STORABLE] | Nothing,
        Field(description="Anything worth knowing, such as the error message."),
    ] = None


class RetrieveArguments(Arguments):
    task: Task
    k: K = 5


class PreferencesArguments(Arguments):
    project: Project = None


class FactsArguments(Arguments):
    project: Annotated[Slug, Field(description=PROJECT)]
    key: Annotated[
        Label | Nothing,
        Field(description="Only the fact about this, such as 'database'."),
    ] = None
