"""Page routes of runs: launching, watching, reading."""

from __future__ import annotations

from django.urls import path

from runs.pages.compare import compare
from runs.pages.launch import launch, launch_subsets, launch_validate
from runs.pages.run import run, run_act, run_log, run_receipt
from runs.pages.run_list import run_list
from runs.pages.stream import stream
from runs.pages.subset import subset
from runs.pages.task import task, task_list

urlpatterns = [
    path("", launch, name="launch"),
    path("launch/validate", launch_validate, name="launch_validate"),
    path("launch/subsets", launch_subsets, name="launch_subsets"),
    path("runs/", run_list, name="run_list"),
    path("runs/<uuid:run_id>/", run, name="run"),
    path("runs/<uuid:run_id>/log/", run_log, name="run_log"),
    path("runs/<uuid:run_id>/receipt/", run_receipt, name="run_receipt"),
    path("runs/<uuid:run_id>/stream", stream, name="run_stream"),
    path("runs/<uuid:run_id>/tasks/", task_list, name="task_list"),
    path("runs/<uuid:run_id>/tasks/<int:index>/", task, name="task"),
    path("runs/<uuid:run_id>/act/<slug:act>/", run_act, name="run_act"),
    path("compare/", compare, name="compare"),
    path("registry/<slug:benchmark_id>/<path:subset_name>/", subset, name="subset"),
]
