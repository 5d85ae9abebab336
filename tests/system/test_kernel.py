"""Calls to the kernel and the C library that Python lacks."""

from __future__ import annotations

import subprocess
import sys

import pytest

_HELD_FREE = """
import psutil
from legion.system import kernel

blocks = [bytearray(4096) for _ in range(20_000)]
del blocks[:-1]  # the last one keeps the allocator from shrinking its heap
before = psutil.Process().memory_info().rss
kernel.return_free_memory()
print((before - psutil.Process().memory_info().rss) >> 20)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's own call")
def test_memory_that_the_allocator_holds_free_goes_back_to_the_system() -> None:
    freed = subprocess.run([sys.executable, "-c", _HELD_FREE], check=True, capture_output=True, text=True).stdout
    assert int(freed) > 50
