"""Words of this app, exactly as API and pages say them."""

from enum import StrEnum


class Visibility(StrEnum):
    PRIVATE = "private"  # the owning account alone
    UNLISTED = "unlisted"  # anyone with the URL, in no list
    PUBLIC = "public"  # listed


class BenchmarkKind(StrEnum):
    DATASET = "dataset"
    BRIDGE = "bridge"
    ENVIRONMENT = "environment"


class Act(StrEnum):
    PROMOTE = "promote"  # a scorer becomes official
    DEMOTE = "demote"  # and no longer is


class BoardRuns(StrEnum):
    PUBLIC = "public"  # runs that everyone may see
    OWN = "own"  # the viewer's account's, whatever their visibility


class BoardBy(StrEnum):
    BEST = "best"  # the model's best run
    MEAN = "mean"  # the mean of its runs on one ruler
