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
