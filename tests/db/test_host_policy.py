"""Where an account's sandboxes may go, set and read through the API."""

from __future__ import annotations

import pytest

from sandboxes.policy import network_for
from tests.db.test_launch import Door
from tests.factories.runs import make_person

pytestmark = pytest.mark.django_db
POLICY = {"mode": "deny", "allow": ["example.org", "*.example.com:443"], "block": ["bad.example.com"]}


@pytest.fixture
def owner() -> Door:
    return Door(*make_person())


def test_a_fresh_account_allows_and_a_set_policy_reaches_its_sandboxes_and_nobody_elses(owner: Door) -> None:
    assert owner("GET", "/host-policy") == (200, {"mode": "allow", "allow": [], "block": []})
    assert owner("PUT", "/host-policy", POLICY) == (200, POLICY)
    network = network_for(owner.account.pk)
    assert (network.mode, network.allow, network.block) == ("deny", tuple(POLICY["allow"]), ("bad.example.com",))
    stranger = Door(*make_person())
    assert stranger("GET", "/host-policy")[1]["mode"] == "allow"
    assert network_for(stranger.account.pk).mode == "allow"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"mode": "maybe"}, "invalid_request"),
        ({"alow": []}, "unknown_key"),
        ({"allow": "example.org"}, "invalid_request"),
        ({"allow": ["http://example.org/"]}, "bad_host_pattern"),
        ([], "invalid_request"),
        ("{", "invalid_json"),
    ],
)
def test_a_policy_that_is_none_is_refused_and_the_old_one_stays(owner: Door, body: object, code: str) -> None:
    owner("PUT", "/host-policy", POLICY)
    status, answer = owner("PUT", "/host-policy", body)
    assert (status, answer["error"]["code"]) == (400, code)
    assert owner("GET", "/host-policy")[1] == POLICY


def test_a_read_only_key_reads_the_policy_and_does_not_set_it(owner: Door) -> None:
    reader = Door(owner.user, owner.account, read_only=True)
    assert reader("GET", "/host-policy")[0] == 200
    assert reader("PUT", "/host-policy", POLICY)[0] == 403
