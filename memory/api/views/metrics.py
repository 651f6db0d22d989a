"""The page that Prometheus reads."""

import hmac
from http import HTTPStatus
from typing import Final

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache

from memory import conf
from memory.api.errors import problem
from memory.api.views.plain import read_only
from memory.services.metrics import CONTENT_TYPE, exposition

_CHALLENGE: Final = 'Bearer realm="Sonder metrics"'


@never_cache
@read_only
def metrics(request: HttpRequest) -> HttpResponse:
    """The installation's health in Prometheus' text format; 404 without `SONDER_METRICS_KEY`, 401 without the key."""
    key = conf.current().metrics_key
    if not key:
        raise Http404
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), key.encode()):
        return problem(
            HTTPStatus.UNAUTHORIZED,
            "Send the value of SONDER_METRICS_KEY as 'Authorization: Bearer <key>'.",
            headers={"WWW-Authenticate": _CHALLENGE},
        )
    return HttpResponse(exposition(), content_type=CONTENT_TYPE)
