"""Swagger UI over the OpenAPI document, from this server alone and under a strict Content-Security-Policy.

drf-spectacular's own page has an inline style, and a badge that its users' browsers fetch from validator.swagger.io.
"""

from django.http import HttpRequest, HttpResponse
from django.templatetags.static import static
from django.urls import reverse
from django.utils.html import format_html

from memory.api.views.plain import read_only

FILES = "drf_spectacular_sidecar/swagger-ui-dist"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",  # the stylesheet's own icons
        "connect-src 'self'",  # the OpenAPI document, and "Try it out"
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sonder API</title>
<link rel="icon" href="{icon}">
<link rel="stylesheet" href="{style}">
</head>
<body>
<div id="swagger-ui" data-schema="{schema}"></div>
<script src="{bundle}"></script>
<script src="{script}"></script>
</body>
</html>
"""
SCRIPT = """"use strict";
SwaggerUIBundle({
  url: document.getElementById("swagger-ui").dataset.schema,
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null,
});
"""


@read_only
def docs(request: HttpRequest) -> HttpResponse:
    """The browsable documentation."""
    page = format_html(
        PAGE,
        icon=static(f"{FILES}/favicon-32x32.png"),
        style=static(f"{FILES}/swagger-ui.css"),
        bundle=static(f"{FILES}/swagger-ui-bundle.js"),
        schema=reverse("schema"),
        script=reverse("docs-script"),
    )
    return HttpResponse(page, headers={"Content-Security-Policy": POLICY})


@read_only
def docs_script(request: HttpRequest) -> HttpResponse:
    """Starts Swagger UI: a file of its own, since the policy allows no inline script."""
    return HttpResponse(SCRIPT, content_type="text/javascript; charset=utf-8")
