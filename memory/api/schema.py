"""The OpenAPI document: each operation lists the problem documents that it may answer with."""

from typing import Any

from drf_spectacular.openapi import AutoSchema

PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
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
ALWAYS = {401: "No valid API key", 403: "The key lacks the scope", 429: "Too many requests; see Retry-After"}
BODY = {
    400: "A field is wrong",
    409: "Idempotency-Key used with another body, or the thing changed",
    413: "Too large",
    415: "Not JSON",
}


class ProblemSchema(AutoSchema):
    """Adds RFC 9457 answers and the Idempotency-Key header to what the serializers say."""

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        operation: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        if operation is None:
            return None
        words = {**ALWAYS, **(BODY if self.method in {"POST", "PATCH", "PUT"} else {400: "A parameter is wrong"})}
        if "{" in self.path or "cursor" in str(operation.get("parameters")):
            words[404] = "Not in this account"
        for status, text in words.items():
            operation["responses"].setdefault(str(status), _answer(text))
        return operation

    def get_override_parameters(self) -> list[Any]:
        from drf_spectacular.utils import OpenApiParameter

        if self.method not in {"POST", "PATCH", "DELETE"}:
            return []
        return [
            OpenApiParameter(
                "Idempotency-Key",
                str,
                OpenApiParameter.HEADER,
                description="The same key with the same body replays the first answer; with another body gives 409.",
            )
        ]


def _answer(text: str) -> dict[str, Any]:
    return {"description": text, "content": {"application/problem+json": {"schema": PROBLEM}}}
