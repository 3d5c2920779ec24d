"""The pipeline at a glance."""

from __future__ import annotations

from runs.phases.analyze import analyze
from runs.phases.atomize import atomize
from runs.phases.attach import attach
from runs.phases.base import Work
from runs.phases.fetch import fetch
from runs.phases.find import find
from runs.phases.fork import fork
from runs.phases.materialize import materialize
from runs.phases.setup import setup
from runs.vocabulary import Phase

PHASES: tuple[tuple[Phase, Work], ...] = (
    (Phase.FORK, fork),
    (Phase.FIND, find),
    (Phase.FETCH, fetch),
    (Phase.ANALYZE, analyze),
    (Phase.SETUP, setup),
    (Phase.ATTACH, attach),
    (Phase.ATOMIZE, atomize),
    (Phase.MATERIALIZE, materialize),
)
