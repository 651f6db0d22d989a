"""Every route of the site."""

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path
from django.views.generic import RedirectView

from memory.api.views.health import healthz, readyz
from memory.api.views.metrics import metrics
from review.views.settings import Password
from sonder_site.login import in_turn

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="review:dashboard"), name="home"),
    path("favicon.ico", RedirectView.as_view(url="/static/favicon.svg")),
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("api/v1/", include("memory.api.urls")),
    path("review/", include("review.urls")),
    path("login/", in_turn(LoginView.as_view()), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("password/", Password.as_view(), name="password"),
    path("admin/", admin.site.urls),
]

handler400 = "memory.api.errors.bad_request"
handler404 = "memory.api.errors.not_found"
handler500 = "memory.api.errors.server_error"
