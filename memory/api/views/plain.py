"""What the views without a key share."""

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse

from memory.api.errors import problem

View = Callable[[HttpRequest], HttpResponse]


def read_only(view: View) -> View:
    """Answers GET and HEAD, and refuses other methods with a problem document."""

    @wraps(view)
    def checked(request: HttpRequest) -> HttpResponse:
        if request.method in {"GET", "HEAD"}:
            return view(request)
        return problem(
            HTTPStatus.METHOD_NOT_ALLOWED, f'Method "{request.method}" not allowed.', headers={"Allow": "GET, HEAD"}
        )

    return checked
