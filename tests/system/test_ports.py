"""Sockets that the parts of Legion listen on."""

from __future__ import annotations

import socket

from legion.system import ports


def test_an_answer_in_two_parts_waits_for_no_acknowledgement_in_between():
    listener = ports.listen("127.0.0.1", 23_900)
    assert listener is not None
    with listener, socket.create_connection(listener.getsockname()[:2]):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
