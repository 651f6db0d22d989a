"""The OpenAPI document: each operation lists the problem documents that it may answer with."""

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent
from drf_spectacular.utils import OpenApiParameter

from memory.api.permissions import scope_of

PROBLEM = {
    "type": "object",
    "description": "A problem document (RFC 9457).",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "format": "uri-reference"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong and what to do about it."},
        "errors": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
            "description": "Sentences by field.",
        },
    },
}
ALWAYS = {
    400: "A field or a parameter is wrong",
    401: "No valid API key",
    429: "Too many requests; see Retry-After",
    503: "The database does not answer; see Retry-After",
}
NOT_FOUND = {404: "Not in this account: what the address names, or what the body refers to"}
OF_A_BODY = {411: "No Content-Length", 413: "Too large", 415: "Not JSON"}
OF_A_WRITE = {409: "Idempotency-Key used for another request, or the thing changed"}
# RFC 9457 documents carry these headers with them.
HEADERS = {
    401: ("WWW-Authenticate", {"type": "string"}),
    429: ("Retry-After", {"type": "integer", "minimum": 1}),
    503: ("Retry-After", {"type": "integer", "minimum": 1}),
}
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[ -~]+$"},
    OpenApiParameter.HEADER,
    description="The same key with the same body replays the first answer; with another body gives 409.",
)


class ProblemSchema(AutoSchema):
    """Adds RFC 9457 answers and the Idempotency-Key header to what the serializers say."""

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        operation: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        if operation is None:
            return None
        for status, text in self._problems().items():
            operation["responses"].setdefault(str(status), self._answer(status, text))
        if "requestBody" in operation and not getattr(self.get_request_serializer(), "may_be_empty", True):
            operation["requestBody"]["required"] = True
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "query" and parameter["schema"].get("type") == "string":
                parameter["schema"].setdefault("minLength", 1)  # an empty one is refused
        return operation

    def _problems(self) -> dict[int, str]:
        problems = {**ALWAYS, 403: f"The key lacks the scope `{scope_of(self.view, self.method)}`"}
        if "{" in self.path or self._writes():
            problems |= NOT_FOUND
        if self.method in {"POST", "PATCH", "PUT"}:
            problems |= OF_A_BODY
        if self._writes():
            problems |= OF_A_WRITE
        problems |= getattr(self.view, "refuses", {})  # what this operation alone may answer
        return dict(sorted(problems.items()))

    def _writes(self) -> bool:
        """Whether the operation takes an Idempotency-Key: its view is a WriteView."""
        return self.method not in {"GET", "HEAD"} and hasattr(self.view, "write")

    def get_override_parameters(self) -> list[Any]:
        return [IDEMPOTENCY_KEY] if self._writes() else []

    def _answer(self, status: int, text: str) -> dict[str, Any]:
        component = ResolvedComponent(
            name="Problem", type=ResolvedComponent.SCHEMA, object=ProblemSchema, schema=PROBLEM
        )
        self.registry.register_on_missing(component)
        answer: dict[str, Any] = {
            "description": text,
            "content": {"application/problem+json": {"schema": component.ref}},
        }
        if status in HEADERS:
            name, schema = HEADERS[status]
            answer["headers"] = {name: {"schema": schema, "required": True}}
        return answer


class StrictBody(OpenApiSerializerExtension):
    """Says of a request's body that it takes no other fields, and whether it needs one at all."""

    target_class = "memory.api.serializers.StrictSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        schema: dict[str, Any] = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        if not self.target.may_be_empty:
            schema["minProperties"] = 1
        # drf-spectacular takes the body of a PATCH for one whose fields are all optional; here a body is what it says.
        required = sorted(name for name, field in self.target.fields.items() if field.required and not field.read_only)
        if required:
            schema["required"] = required
        return {**schema, "additionalProperties": False}
