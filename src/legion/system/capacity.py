"""Room for agents on this machine, by its memory and by the files that the daemon may have open."""

from __future__ import annotations

import resource

from legion.system.cgroups import machine_memory

_OF_AGENT = 192 << 20
"""Bytes of memory that an agent program with its runner takes, at the least."""
_FILES_OF_AGENT = 6
"""What the daemon has open for each agent at work: its runner's socket, its journal, a pipe at the start, a request."""
_FILES_BESIDES = 200
_MOST_FILES = 16_384
"""Programs inherit the limit: those that close all files that may be open are still quick."""


def raise_open_files() -> None:
    """Let this process have as many files open as the system allows, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, _MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def agents_by_memory() -> int:
    return machine_memory() // _OF_AGENT


def agents_by_open_files() -> int:
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    files = _MOST_FILES if soft == resource.RLIM_INFINITY else soft
    return max(0, files - _FILES_BESIDES) // _FILES_OF_AGENT
