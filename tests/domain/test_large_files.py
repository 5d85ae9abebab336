"""Large files: above the limit, not declared, and only where there is a limit."""

from __future__ import annotations

import itertools

from legion.domain.review.additions import LargeFile, too_large

MEGABYTE = 1 << 20


def test_only_undeclared_files_above_the_limit_are_too_large():
    for limit, size, declared in itertools.product((0, 0.5, 1, 50), (0, 1, MEGABYTE, 60 * MEGABYTE), ((), ("data",))):
        found = too_large([("data/a.bin", size)], declared, limit)
        expected = bool(limit) and size > limit * MEGABYTE and not declared
        assert found == ((LargeFile(path="data/a.bin", bytes=size),) if expected else ())


def test_the_sentence_names_file_and_size():
    assert LargeFile(path="a.bin", bytes=300 * MEGABYTE).sentence == "a.bin: 300 MB"
