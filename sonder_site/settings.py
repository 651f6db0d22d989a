"""Wiring, in one file. Product constants live in ``memory/conf.py``; this reads the environment once."""

import os
import re
from collections.abc import MutableMapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog

from memory import conf
from sonder_site.celery_settings import celery_settings
from sonder_site.environment import MAIL_SECONDS, Environment, with_files
from sonder_site.secret import secret_key

BASE_DIR = Path(__file__).resolve().parent.parent
_variables = with_files(os.environ)
env = Environment(_variables)

globals().update(conf.from_environment(_variables, BASE_DIR))
SONDER_VAR: str = str(globals()["SONDER_VAR"])

DEBUG = env.flag("DEBUG", False)
SECRET_KEY = env.secret("SECRET_KEY") or secret_key(Path(SONDER_VAR))
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.origins("CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "sonder_site.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "pgtrigger",
    "django_celery_beat",
    "django_structlog",
    "axes",
    "sonder_site",
    "memory",
    "review",
    "evaluation",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "sonder_site.middleware.ContentSecurityPolicyMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "sonder_site.middleware.RequestIdMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "sonder_site.urls"
ASGI_APPLICATION = "sonder_site.asgi.application"
WSGI_APPLICATION = "sonder_site.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "review.context.review",
            ]
        },
    }
]

# Requests of MCP run on threads that come and go, so connections live in a pool and not on a thread.
_POOL_SIZE = env.number("DATABASE_POOL_SIZE", 20, low=1, high=1000)
REQUEST_THREADS = max(1, _POOL_SIZE * 4 // 5)  # of a web process, for the site: what waits for a thread needs no pool
_POOL = {"min_size": 1, "max_size": _POOL_SIZE, "timeout": 10}
DATABASES = {"default": env.database("DATABASE_URL", SONDER_VAR)}
DATABASES["default"]["OPTIONS"] = {**DATABASES["default"].get("OPTIONS", {}), "pool": _POOL}
DATABASES["default"]["CONN_MAX_AGE"] = 0
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]

# The first only refuses, the second knows people.
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
TRUSTED_PROXIES = env.number("TRUSTED_PROXIES", 0, low=0, high=10)
AXES_FAILURE_LIMIT = 10  # somebody who looks for their password needs a few; a thousand guesses a day find none
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_USERNAME_CALLABLE = "sonder_site.login.counted_name"
AXES_CLIENT_IP_CALLABLE = "sonder_site.login.client_address"
AXES_LOCKOUT_CALLABLE = "sonder_site.login.locked"
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_DISABLE_ACCESS_LOG = True  # who logged in when is nobody's business
AXES_VERBOSE = False
AXES_ENABLE_ADMIN = False  # what is locked opens by itself; docs/operations.md says how to open it sooner
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "review:dashboard"
LOGOUT_REDIRECT_URL = "login"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True
STATIC_URL = "static/"
STATIC_ROOT = env.text("STATIC_ROOT") or None
STATICFILES_DIRS = [BASE_DIR / "static"]
# Served from the packages themselves: no collectstatic step before the first page.
WHITENOISE_USE_FINDERS = True

DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000_000  # bytes; a task of a megabyte is a mistake, and is told so
DATA_UPLOAD_MAX_NUMBER_FIELDS = 10_000  # a prune plan has four for each lesson, and shows a whole cluster
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"

_HTTPS: bool = globals()["SONDER_HTTPS"]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = _HTTPS
SECURE_REDIRECT_EXEMPT = ["^healthz$", "^readyz$"]  # probes come past the proxy
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _HTTPS else None
SECURE_HSTS_SECONDS: int = globals()["SONDER_HSTS_SECONDS"] if _HTTPS else 0
# What other hosts of the domain do, and whether browsers are built with it, is not for one application to decide.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

REDIS_URL = env.address("REDIS_URL", "redis", "rediss", "unix")
# A Redis that hangs must not hang a request: without its counters the store goes on working.
_REDIS_SECONDS = {"socket_timeout": 1.0, "socket_connect_timeout": 1.0}
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "OPTIONS": _REDIS_SECONDS,
    }
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["memory.api.authentication.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["memory.api.permissions.HasScope"],
    "DEFAULT_THROTTLE_CLASSES": ["memory.api.throttles.KeyThrottle"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["memory.api.parsers.StrictJSONParser"],
    "DEFAULT_PAGINATION_CLASS": "memory.api.pagination.CreatedPagination",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "memory.api.schema.ProblemSchema",
    "EXCEPTION_HANDLER": "memory.api.errors.problem_handler",
    "PAGE_SIZE": 50,
    "UNAUTHENTICATED_USER": None,
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Sonder",
    "DESCRIPTION": "Memory for AI agents that finds out whether a lesson helped.",
    "VERSION": "0.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
}

# Mail: only the digest of the review pages, to those who choose it.
globals().update(env.mail("EMAIL_URL"))
EMAIL_TIMEOUT = MAIL_SECONDS
DEFAULT_FROM_EMAIL = env.text("EMAIL_FROM") or "sonder@localhost"

_BROKER_URL = env.address("CELERY_BROKER_URL", "redis", "rediss")
# The broker: files in SONDER_VAR without a server, any Celery broker with CELERY_BROKER_URL.
globals().update(celery_settings(_BROKER_URL, Path(SONDER_VAR)))
CELERY_BEAT_SCHEDULE = {
    "credit sweep": {"task": "memory.tasks.credit_sweep", "schedule": float(globals()["SONDER_SWEEP_SECONDS"])},
    "distillation sweep": {
        "task": "memory.tasks.distill_sweep",
        "schedule": float(globals()["SONDER_SWEEP_SECONDS"]),
        # A sweep takes as long as the models do: those that could not start meanwhile are dropped, not queued.
        "options": {"expire_seconds": int(globals()["SONDER_SWEEP_SECONDS"])},
    },
    "embedding sweep": {
        "task": "memory.tasks.maintenance_embed_sweep",
        "schedule": float(globals()["SONDER_SWEEP_SECONDS"]),
    },
    "webhook sweep": {
        "task": "memory.tasks.maintenance_webhook_sweep",
        "schedule": float(globals()["SONDER_SWEEP_SECONDS"]),
        "options": {"expire_seconds": int(globals()["SONDER_SWEEP_SECONDS"])},
    },
    "session summaries": {
        "task": "memory.tasks.maintenance_summaries",
        "schedule": float(globals()["SONDER_SUMMARY_SECONDS"]),
    },
    "review queue": {"task": "memory.tasks.maintenance_review_queue", "schedule": 300.0},
    "contradictions": {"task": "memory.tasks.maintenance_contradictions", "schedule": 3600.0},
    "judging": {"task": "memory.tasks.maintenance_judging", "schedule": 900.0},
    "prune plan": {"task": "memory.tasks.maintenance_prune_plan", "schedule": 6 * 3600.0},
    "staleness": {"task": "memory.tasks.maintenance_staleness", "schedule": 24 * 3600.0},
    "review digest": {"task": "review.tasks.digest", "schedule": 3600.0},
    "daily maintenance": {"task": "memory.tasks.maintenance_daily", "schedule": 24 * 3600.0},
}

# A task's lines carry its own id and that of the request that announced it.
DJANGO_STRUCTLOG_CELERY_ENABLED = True
# The id is RequestIdMiddleware's, which lets nothing through that does not look like one.
DJANGO_STRUCTLOG_TRUST_UPSTREAM_REQUEST_ID = True

# What every line says, whoever wrote it: the request it belongs to, when, who and how grave.
_KEY = re.compile(r"sonder_([a-z0-9]{12})_[A-Za-z0-9_-]{20,}")


def _without_keys(_: Any, __: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """An API key that somebody put into an address stays out of the log; its prefix says whose it was."""
    return {name: _KEY.sub(r"sonder_\1_…", value) if isinstance(value, str) else value for name, value in line.items()}


_LINE: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.format_exc_info,
    _without_keys,
]
structlog.configure(
    processors=[
        structlog.stdlib.filter_by_level,
        *_LINE,
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    logger_factory=structlog.stdlib.LoggerFactory(),
    cache_logger_on_first_use=True,
)
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": structlog.stdlib.ProcessorFormatter,
            "processor": structlog.processors.JSONRenderer(),
            "foreign_pre_chain": _LINE,
        }
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env.level("LOG_LEVEL", "INFO")},
    "loggers": {
        # The clients of the model servers log each address at INFO, which may hold a key, and whole requests at DEBUG:
        # what agents wrote stays out of the log. `httpx2` is what newer clients are built on.
        "httpx": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "httpcore": {"level": "WARNING"},
        "httpcore2": {"level": "WARNING"},
        "openai": {"level": "WARNING"},
        "mcp": {"level": "WARNING"},  # the SDK's server, which does the same
        # Each request and each task would say that it came and that it went.
        "django_structlog.celery.receivers": {"level": env.level("REQUEST_LOG_LEVEL", "WARNING")},
        "django_structlog.middlewares.request": {"level": env.level("REQUEST_LOG_LEVEL", "WARNING")},
        "celery.app.trace": {"level": "WARNING"},
        "celery.worker.strategy": {"level": "WARNING"},
    },
}
