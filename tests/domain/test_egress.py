"""Which addresses a program may reach: names, addresses in every spelling, lists that only narrow, names in TLS."""

from __future__ import annotations

import ipaddress
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.domain.egress import (
    FINAL,
    EgressMode,
    EgressPolicy,
    NetworkPlace,
    address,
    host_of,
    is_public,
    narrowed,
    parse_place,
    parse_places,
    server_name,
)

PUBLIC = EgressPolicy(mode=EgressMode.PUBLIC)
NEAR = ipaddress.ip_address("127.0.0.1")
FAR = ipaddress.ip_address("93.184.215.14")


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "[::1]", "::ffff:127.0.0.1", "93.184.215.14"],
)
def test_an_address_in_any_spelling_is_no_name(host: str):
    assert "is an address" in PUBLIC.fault(host_of(host), 443)


@pytest.mark.parametrize(
    "found",
    [
        *(
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
        ),
        *("255.255.255.255", "240.0.0.1", "::1", "::", "fe80::1", "fd00::2", "ff02::1", "::ffff:10.0.0.1"),
        *("64:ff9b::7f00:1", "2002:7f00:1::", "2001::1", "192.0.2.1", "2001:db8::1", "168.63.129.16"),
    ],
)
def test_no_address_of_this_machine_or_its_neighbours_is_public(found: str):
    assert not is_public(ipaddress.ip_address(found))
    assert PUBLIC.resolved_fault("files.example.org", 443, ipaddress.ip_address(found))


def test_a_public_name_is_reached_by_whatever_public_address_it_has():
    assert PUBLIC.fault("files.example.org", 443) == ""
    assert PUBLIC.resolved_fault("files.example.org", 443, FAR) == ""
    assert PUBLIC.resolved_fault("files.example.org", 443, ipaddress.ip_address("2606:2800:21f:cb07::1")) == ""


def test_a_list_holds_names_those_below_them_and_ports():
    places = parse_places(["example.org", "*.files.example.org", "odd.example.org:8443"])
    policy = EgressPolicy(mode=EgressMode.LIST, allow=places)
    allowed = [
        ("example.org", 443),
        ("a.files.example.org", 80),
        ("b.a.files.example.org", 1),
        ("odd.example.org", 8443),
    ]
    refused = [
        *[("files.example.org", 443), ("odd.example.org", 443), ("badexample.org", 443), ("a.example.org", 443)],
        *[("afiles.example.org", 443), ("example.org.evil.org", 443), ("93.184.215.14", 443)],
    ]
    assert [policy.fault(*place) == "" for place in (*allowed, *refused)] == [True] * 4 + [False] * 7


def test_what_the_person_named_may_be_private_but_never_this_machine():
    own = EgressPolicy(mode=EgressMode.PUBLIC, private=parse_places(["git.corp.example", "10.0.0.5", "*.lab.example"]))
    private = ipaddress.ip_address("10.0.0.5")
    assert own.fault("10.0.0.5", 80) == own.resolved_fault("git.corp.example", 443, private) == ""
    assert own.resolved_fault("x.lab.example", 443, private), "whoever owns one name below it could lead anywhere"
    for near in ("127.0.0.1", "::1", "169.254.169.254", "::ffff:127.0.0.1", "0.0.0.0"):
        for policy in (own, PUBLIC):
            fault = policy.resolved_fault("git.corp.example", 443, ipaddress.ip_address(near))
            assert fault.startswith(FINAL), "it is not asked about: no answer would open it"


@pytest.mark.parametrize("host", ["localhost", "a.localhost"])
def test_names_that_mean_this_machine_are_refused_before_anything_is_resolved(host: str):
    own = EgressPolicy(mode=EgressMode.LIST, allow=parse_places([host]), private=parse_places([host]))
    assert "this machine" in PUBLIC.fault(host, 80)
    assert "this machine" in own.fault(host, 80)


def test_nothing_is_reached_without_a_network_and_no_port_beyond_the_last():
    nothing = EgressPolicy(mode=EgressMode.NONE, allow=parse_places(["example.org"]))
    assert nothing.fault("example.org", 443)
    assert PUBLIC.fault("example.org", 0)
    assert PUBLIC.fault("example.org", 65536)


PLACES = [
    NetworkPlace("a.org"),
    NetworkPlace("a.org", 443),
    NetworkPlace("*.a.org"),
    NetworkPlace("x.a.org"),
    NetworkPlace("b.org"),
]
POLICIES = st.builds(
    EgressPolicy,
    mode=st.sampled_from(EgressMode),
    allow=st.lists(st.sampled_from(PLACES), max_size=3).map(tuple),
    private=st.lists(st.sampled_from(PLACES), max_size=2).map(tuple),
)
HOSTS = st.sampled_from(["a.org", "x.a.org", "y.x.a.org", "b.org", "c.org", "93.184.215.14"])


@given(POLICIES, POLICIES, HOSTS, st.sampled_from([80, 443]), st.sampled_from([NEAR, FAR, "10.0.0.1"]))
def test_a_repository_only_narrows(person, repository, host, port, found):
    both = narrowed(person, repository)
    if both.fault(host, port) == "":
        assert person.fault(host, port) == ""
        open_list = EgressPolicy(mode=repository.mode, allow=repository.allow, private=person.private)
        assert open_list.fault(host, port) == ""
    found = ipaddress.ip_address(found)
    assert both.resolved_fault(host, port, found) == person.resolved_fault(host, port, found)


def test_what_both_lists_hold_stays():
    person = EgressPolicy(mode=EgressMode.LIST, allow=parse_places(["*.a.org", "b.org"]))
    repository = EgressPolicy(mode=EgressMode.LIST, allow=parse_places(["x.a.org", "b.org:443", "c.org"]))
    both = narrowed(person, repository)
    assert [both.fault(*one) == "" for one in (("x.a.org", 80), ("b.org", 443), ("b.org", 80), ("c.org", 443))] == [
        *(True, True, False, False)
    ]


@pytest.mark.parametrize(
    "wrong", ["", "*", "*.org", "a b", "a.org:0", "a.org:65536", "a..org", "a/b", "http://a.org", "-a.org"]
)
def test_what_is_no_place_is_refused(wrong: str):
    with pytest.raises(ValueError, match=r"."):
        parse_place(wrong)


def test_hosts_are_compared_as_resolvers_do():
    assert host_of(" Files.Example.ORG. ") == "files.example.org"
    assert host_of("bücher.example") == "xn--bcher-kva.example"
    assert parse_place("[::1]:80") == NetworkPlace("::1", 80)
    assert address("example.org") is None


def test_the_name_that_a_client_asks_for_is_read_from_its_first_message():
    ours, theirs = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ours, theirs, server_hostname="files.example.org")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    hello = theirs.read()
    assert server_name(hello) == "files.example.org"
    assert server_name(b"GET / HTTP/1.1\r\n") is None
    for end in range(len(hello)):
        assert server_name(hello[:end]) in (None, "", "files.example.org")


@given(st.binary(max_size=300))
def test_no_first_message_breaks_the_reader(hello: bytes):
    server_name(b"\x16\x03\x01" + hello)
