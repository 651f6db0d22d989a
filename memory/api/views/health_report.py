"""The learning-health report."""

from dataclasses import asdict, fields, is_dataclass
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.views.base import ScopedView
from memory.services.health import HealthReport, report

PLAIN: dict[type, type[serializers.Field[Any, Any, Any, Any]]] = {
    int: serializers.IntegerField,
    float: serializers.FloatField,
    str: serializers.CharField,
    datetime: serializers.DateTimeField,
}


def serializer_of(kind: type) -> type[serializers.Serializer[Any]]:
    """The serializer of a frozen dataclass of plain values, dataclasses, and tuples and options of these.

    So the report is described once, and the API cannot say something else than the service.
    """
    hints = get_type_hints(kind)
    parts = {f.name: _field(hints[f.name]) for f in fields(kind)}
    return type(f"{kind.__name__}Serializer", (serializers.Serializer,), {**parts, "__doc__": kind.__doc__})


def _field(kind: Any, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    if get_origin(kind) is tuple:
        return _field(get_args(kind)[0], many=True)
    if get_origin(kind) is UnionType:
        (inner,) = set(get_args(kind)) - {NoneType}
        return _field(inner, allow_null=True, **options)
    if is_dataclass(kind):
        assert isinstance(kind, type)
        return serializer_of(kind)(**options)
    return PLAIN.get(kind, serializers.CharField)(**options)  # what is left is a word of a closed list


HealthReportSerializer = serializer_of(HealthReport)


class HealthView(ScopedView):
    """Whether the store learns."""

    @extend_schema(responses=HealthReportSerializer)
    def get(self, request: Request) -> Response:
        """The last four weeks: judges, outcomes, lessons, queues, jobs, and a state with its reasons."""
        return Response(HealthReportSerializer(asdict(report(self.caller.account_id))).data)
