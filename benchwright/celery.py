"""Workers and beat. A task is a run id; everything else is in the log."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchwright.settings")

from celery import Celery
from kombu import Queue

app = Celery("benchwright")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_queues = [Queue(app.conf.task_default_queue), Queue("beat")]
app.autodiscover_tasks(["runs"])
