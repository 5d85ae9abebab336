"""Sockets that the parts of Legion listen on."""

from __future__ import annotations

import socket

import pytest

from legion.system import ports
from tests.support.attacks import Attacker, Door, attack


def test_an_answer_in_two_parts_waits_for_no_acknowledgement_in_between():
    listener = ports.listen("127.0.0.1", 23_900)
    assert listener is not None
    with listener, socket.create_connection(listener.getsockname()[:2]):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@attack(Attacker.DEV_SERVER, Door.ORIGIN)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_whatever_address_localhost_has_the_port_there_is_ours(host: str):
    first, second = ports.listen_by_name(host, 0)
    with first, second:
        port = first.getsockname()[1]
        assert {first.getsockname()[:2], second.getsockname()[:2]} == {("127.0.0.1", port), ("::1", port)}
        taken = ports.listen_by_name(host, port)
        assert taken[0].getsockname()[1] == taken[1].getsockname()[1] != port
        for one in taken:
            one.close()


def test_a_port_that_another_program_has_at_one_address_is_not_taken_at_the_other():
    other = ports.listen("::1", 0)
    assert other is not None
    with other:
        first, second = ports.listen_by_name("localhost", other.getsockname()[1])
        with first, second:
            assert first.getsockname()[1] == second.getsockname()[1] > other.getsockname()[1]


def test_a_host_of_another_name_has_one_address():
    (only,) = ports.listen_by_name("127.0.0.3", 0)
    with only:
        assert only.getsockname()[0] == "127.0.0.3"
