"""Trailers stand at the end of a message, once, whatever was there before."""

from __future__ import annotations

import pytest

from legion.git.core.history import with_trailers

OURS = {"Ticket": "12", "Agent": "claude"}


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        (b"subject\n", b"subject\n\nTicket: 12\nAgent: claude\n"),
        (b"subject\n\nbody\n\n", b"subject\n\nbody\n\nTicket: 12\nAgent: claude\n"),
        (b"subject\n\nSigned-off-by: Ada\n", b"subject\n\nSigned-off-by: Ada\nTicket: 12\nAgent: claude\n"),
        (b"subject\n\nbody\n\nticket: 99\nAttempt: 1\n", b"subject\n\nbody\n\nAttempt: 1\nTicket: 12\nAgent: claude\n"),
        (b"fix: a subject that looks like one\n", b"fix: a subject that looks like one\n\nTicket: 12\nAgent: claude\n"),
        (b"subject\n\nA: b\nand text\n", b"subject\n\nA: b\nand text\n\nTicket: 12\nAgent: claude\n"),
        ("gr\xfcn\n".encode("latin-1"), b"gr\xfcn\n\nTicket: 12\nAgent: claude\n"),
    ],
)
def test_trailers_follow_the_text_and_join_those_that_are_there(message: bytes, wanted: bytes):
    assert with_trailers(message, OURS) == wanted
    assert with_trailers(wanted, OURS) == wanted


def test_a_value_is_one_line_of_ascii():
    assert with_trailers(b"s\n", {"Agent": "a\nTicket: 13 é"}) == b"s\n\nAgent: a Ticket: 13 ?\n"


def test_an_empty_value_takes_the_name_from_the_text():
    ours = {"Ticket": "12", "Undoes": ""}
    assert with_trailers(b"s\n\nUndoes: 3\nA: b\n", ours) == b"s\n\nA: b\nTicket: 12\n"
    assert with_trailers(b"s\n\nundoes: 3\n", {"Undoes": ""}) == b"s\n"
    assert with_trailers(b"s\n", {"Undoes": ""}) == b"s\n"


def test_without_any_the_message_stays_as_it_is():
    assert with_trailers(b"subject", {}) == b"subject"
