"""Names of events and of their fields are for ever: logs written today are read in ten years."""

from __future__ import annotations

import msgspec

from runs.events.types.union import EVENT_TYPES
from runs.fingerprints.rules import LOAD_BEARING
from tests.contracts.project import ROOT

FROZEN = ROOT / "tests" / "contracts" / "frozen_events.txt"


def frozen() -> dict[str, list[str]]:
    """Type name to field names, as they were when they were first written."""
    lines = [line for line in FROZEN.read_text().splitlines() if line and not line.startswith("#")]
    return {name: fields.split() for name, _, fields in (line.partition(":") for line in lines)}


def fields_of(name: str) -> dict[str, bool]:
    """Field name to whether it is required."""
    return {f.name: f.required for f in msgspec.structs.fields(EVENT_TYPES[name])}


def test_no_event_type_is_ever_removed_or_renamed() -> None:
    assert not sorted(set(frozen()) - set(EVENT_TYPES))


def test_no_field_is_ever_removed_or_renamed() -> None:
    gone = {
        name: sorted(set(fields) - set(fields_of(name))) for name, fields in frozen().items() if name in EVENT_TYPES
    }
    assert not {name: fields for name, fields in gone.items() if fields}


def test_a_field_that_came_later_has_a_default_so_that_old_events_are_still_read() -> None:
    known = frozen()
    later = {name: [f for f, must in fields_of(name).items() if must and f not in known[name]] for name in known}
    assert not {name: fields for name, fields in later.items() if fields}


def test_a_new_event_type_is_frozen_with_the_change_that_adds_it() -> None:
    missing = [f"{name}: {' '.join(fields_of(name))}" for name in EVENT_TYPES if name not in frozen()]
    assert not missing, f"add to {FROZEN.name}: {missing}"


def test_the_fingerprint_hashes_only_artifacts_and_only_fields_that_they_have() -> None:
    for name, paths in LOAD_BEARING.items():
        assert name.endswith("Artifact") and name in EVENT_TYPES
        assert {path.split(".")[0] for path in paths} <= set(fields_of(name))
    assert {name for name in EVENT_TYPES if name.endswith("Artifact")} == set(LOAD_BEARING), "which fields count?"


def test_nothing_before_attach_holds_the_model() -> None:
    before = ("FetchArtifact", "AnalyzeArtifact", "DatasetTasksArtifact", "SetupArtifact")
    assert not [name for name in before if "model" in " ".join(fields_of(name))]
