"""Every setting, read once from the environment. The defaults run the embedded services on one machine."""

from __future__ import annotations

import os
from pathlib import Path

import environ
from csp.constants import NONCE, NONE, SELF

from benchwright import env
from benchwright.lib.paths import ROOT, runtime_dir, state_dir

BASE_DIR: Path = ROOT
SECRET_KEY = env.secret_key()
DEBUG = env.flag("BENCHWRIGHT_DEBUG")
BASE_URL = os.environ.get("BENCHWRIGHT_BASE_URL") or (
    f"http://{os.environ.get('BENCHWRIGHT_HOST', '127.0.0.1')}:{env.integer('BENCHWRIGHT_PORT', 8800)}"
)
ALLOWED_HOSTS = env.words("BENCHWRIGHT_ALLOWED_HOSTS") or ["*"]
CSRF_TRUSTED_ORIGINS = [BASE_URL, *env.words("BENCHWRIGHT_TRUSTED_ORIGINS")]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BASE_URL.startswith("https://")
SESSION_COOKIE_NAME = "bw_session"
CSRF_COOKIE_NAME = "bw_csrf"
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "template_partials",
    "csp",
    "benchwright.lib.apps.LibConfig",
    "billing.apps.BillingConfig",
    "registry.apps.RegistryConfig",
    "sandboxes.apps.SandboxesConfig",
    "runs.apps.RunsConfig",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "benchwright.request_id.RequestId",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "benchwright.urls"
ASGI_APPLICATION = "benchwright.asgi.application"
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
                "csp.context_processors.nonce",
                "benchwright.context.shell",
            ]
        },
    }
]

_database = environ.Env.db_url_config(
    os.environ.get("DATABASE_URL") or f"postgresql://benchwright@/benchwright?host={runtime_dir() / 'pg'}"
)
_database["CONN_HEALTH_CHECKS"] = True
_pool = env.integer("BENCHWRIGHT_DB_POOL", 0)
_database.setdefault("OPTIONS", {})
if _pool:
    # Each ASGI request runs in a thread of its own: without a pool each would open its own connection.
    _database["OPTIONS"]["pool"] = {"min_size": 1, "max_size": _pool, "timeout": 20}
else:
    _database["CONN_MAX_AGE"] = 60
DATABASES = {"default": _database}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "billing.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "/sign-in/"
LOGIN_REDIRECT_URL = "/"

REDIS_URL = os.environ.get("REDIS_URL") or f"unix://{runtime_dir() / 'valkey.sock'}?db=0"


def broker_url(redis_url: str, database: int) -> str:
    """Celery's spelling of a Redis URL: sockets are `redis+socket://PATH?virtual_host=N`."""
    if redis_url.startswith("unix://"):
        return f"redis+socket://{redis_url[7:].split('?')[0]}?virtual_host={database}"
    return redis_url


CELERY_BROKER_URL = os.environ.get("CELERY_BROKER_URL") or broker_url(REDIS_URL, 0)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False  # a run is recovered by its lease in Postgres, never by the broker
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 3600, "socket_timeout": 30}
CELERY_BEAT_SCHEDULE_FILENAME = str(runtime_dir() / "beat-schedule")
CELERY_TASK_DEFAULT_QUEUE = os.environ.get("BENCHWRIGHT_QUEUE", "runs")
CELERY_BEAT_SCHEDULE = {
    "recover": {"task": "runs.tasks.recover", "schedule": 2.0, "options": {"expires": 10, "queue": "beat"}},
    "reap": {"task": "runs.tasks.reap", "schedule": 60.0, "options": {"expires": 60, "queue": "beat"}},
}

CACHES = {"default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": REDIS_URL}}

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = state_dir() / "static"  # served from the source by the finders; a deployment may collect here
STATIC_ROOT.mkdir(parents=True, exist_ok=True)
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
USE_I18N = False

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}

DATA_UPLOAD_MAX_MEMORY_SIZE = 64 << 20  # bodies: uploads may come as JSON
FILE_UPLOAD_MAX_MEMORY_SIZE = 8 << 20
UPLOAD_MAX_BYTES = env.integer("BENCHWRIGHT_UPLOAD_MAX_BYTES", 256 << 20)

# A worker renews its lease this often; a lease is lost after `LEASE_SECONDS` without renewal.
HEARTBEAT_SECONDS = 1.0
LEASE_SECONDS = env.integer("BENCHWRIGHT_LEASE_SECONDS", 10, least=3)
TRUSTED_HOSTS = env.words("BENCHWRIGHT_TRUSTED_HOSTS")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["stderr"], "level": os.environ.get("BENCHWRIGHT_LOG_LEVEL", "INFO")},
    "loggers": {
        "httpx": {"level": "WARNING"},
        "django.request": {"level": "ERROR"},
        # Beat asks every two seconds whether a run was left alone; that is not news.
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
    },
}
