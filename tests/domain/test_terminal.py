"""The frames between a terminal and its viewers, however they are cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.domain.terminal import (
    LONGEST_FRAME,
    BadFrame,
    FrameKind,
    FrameReader,
    Hello,
    TerminalEnd,
    TerminalSize,
    frame,
)

FRAMES = st.lists(st.tuples(st.sampled_from(FrameKind), st.binary(max_size=300)), max_size=8)


@given(frames=FRAMES, cuts=st.lists(st.integers(1, 40), min_size=1, max_size=200))
def test_frames_are_the_same_however_they_arrive(frames: list[tuple[FrameKind, bytes]], cuts: list[int]):
    sent = b"".join(frame(kind, data) for kind, data in frames)
    reader, got, position = FrameReader(), [], 0
    while position < len(sent):
        step = cuts[position % len(cuts)]
        got += list(reader.feed(sent[position : position + step]))
        position += step
    assert got == frames


@given(size=st.builds(TerminalSize, columns=st.integers(-5, 100_000), rows=st.integers(-5, 100_000)))
def test_every_size_that_arrives_can_be_drawn_on(size: TerminalSize):
    assert TerminalSize.from_bytes(size.to_bytes()) == size.usable
    assert 2 <= size.usable.columns <= 1000
    assert Hello.from_bytes(Hello(size=size, only_looks=True).to_bytes()) == Hello(size=size.usable, only_looks=True)


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1", b"k" + (LONGEST_FRAME + 1).to_bytes(4)], ids=["another-protocol", "too-long"]
)
def test_what_is_no_frame_is_refused(data: bytes):
    with pytest.raises(BadFrame):
        list(FrameReader().feed(data))


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"columns": "1", "rows": 2}'], ids=["empty", "list", "bare", "text"]
)
def test_a_hello_without_a_size_is_refused(data: bytes):
    with pytest.raises(BadFrame):
        Hello.from_bytes(data)


def test_an_end_without_a_code_is_no_exit():
    assert TerminalEnd.from_bytes(b"{}") == TerminalEnd(exit_code=None, message="")
