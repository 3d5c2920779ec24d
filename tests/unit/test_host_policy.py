"""The host policy: names, patterns, and addresses in every disguise."""

from __future__ import annotations

import pytest

from sandboxes.egress.policy import as_address, host_policy, normalise_host, parse_pattern


@pytest.mark.parametrize(
    ("pattern", "host", "port", "hit"),
    [
        ("example.org", "example.org", 443, True),
        ("example.org", "www.example.org", 443, False),
        ("example.org", "EXAMPLE.org.", 443, True),
        ("*.example.org", "www.example.org", 443, True),
        ("*.example.org", "a.b.example.org", 443, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "evilexample.org", 443, False),
        ("example.org:8443", "example.org", 8443, True),
        ("example.org:8443", "example.org", 443, False),
        ("*", "anything.test", 1, True),
        ("*:443", "anything.test", 80, False),
        ("bücher.example", "xn--bcher-kva.example", 443, True),
    ],
)
def test_an_allow_rule_speaks_about_exactly_its_hosts(pattern: str, host: str, port: int, hit: bool) -> None:
    assert host_policy("deny", allow=[pattern]).judge_host(host, port).allowed is hit


def test_a_block_rule_beats_an_allow_rule() -> None:
    policy = host_policy("allow", allow=["api.example.org"], block=["*.example.org"])
    assert not policy.judge_host("api.example.org", 443).allowed
    assert policy.judge_host("example.net", 443).allowed


def test_deny_mode_refuses_what_no_rule_names() -> None:
    verdict = host_policy("deny").judge_host("example.org", 443)
    assert not verdict.allowed and "no rule" in verdict.why


@pytest.mark.parametrize(
    "literal",
    [
        "93.184.216.34",
        "127.0.0.1",
        "127.1",
        "0x7f000001",
        "2130706433",
        "0177.0.0.1",
        "[::1]",
        "::ffff:127.0.0.1",
        "[2606:2800:220:1::1]",
        "0",
    ],
)
def test_a_bare_address_is_refused_in_every_spelling(literal: str) -> None:
    assert not host_policy("allow").judge_host(literal, 80).allowed


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "::1",
        "fc00::1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "203.0.113.80",
        "240.0.0.1",
        "not an address",
    ],
)
def test_a_name_that_leads_to_a_private_address_is_refused(address: str) -> None:
    assert not host_policy("allow").judge_address("rebind.test", 80, address).allowed


def test_a_public_address_is_fine() -> None:
    policy = host_policy("allow")
    assert policy.judge_address("example.org", 443, "93.184.216.34").allowed
    assert policy.judge_address("example.org", 443, "2606:2800:220:1:248:1893:25c8:1946").allowed


def test_a_declared_endpoint_may_be_private_but_only_on_its_port() -> None:
    policy = host_policy("deny", allow=["127.0.0.1:8000"], private_ok=["127.0.0.1:8000"])
    assert policy.judge_host("127.0.0.1", 8000).allowed
    assert policy.judge_address("127.0.0.1", 8000, "127.0.0.1").allowed
    assert not policy.judge_host("127.0.0.1", 5432).allowed


def test_private_ok_alone_allows_nothing() -> None:
    assert not host_policy("deny", private_ok=["mirror.test"]).judge_host("mirror.test", 443).allowed


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.170.2",
        "fd00:ec2::254",
        "fe80::1",
        "0.0.0.0",
        "224.0.0.1",
        "::ffff:169.254.169.254",
        "100.100.100.200",
    ],
)
def test_metadata_and_link_local_are_refused_even_when_declared(address: str) -> None:
    policy = host_policy("allow", private_ok=["*"])
    assert not policy.judge_address("mine.test", 80, address).allowed
    assert not policy.judge_host(address, 80).allowed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a b",
        "exa*mple.org",
        "*.*.org",
        "host:0",
        "host:99999",
        "host:x",
        "[::1",
        "*.127.0.0.1",
        "-a.org",
        "a/b",
        "http://a.org",
        "a" * 254,
    ],
)
def test_a_pattern_that_means_nothing_is_refused_in_words(text: str) -> None:
    with pytest.raises(ValueError, match=r"host|port|wildcard"):
        parse_pattern(text)


def test_hosts_have_one_spelling() -> None:
    assert normalise_host("ExAmple.ORG.") == "example.org"
    assert normalise_host("[::1]") == "::1"
    assert normalise_host("0x7f.1") == "127.0.0.1"
    assert as_address("example.org") is None
    assert str(parse_pattern("*.Example.org:443")) == "*.example.org:443"
    assert str(parse_pattern("[::1]:80")) == "[::1]:80"


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="allow or deny"):
        host_policy("maybe")
