"""Which tests CI may skip. Every other skip fails there: it would hide that something was not installed."""

from __future__ import annotations

import os

ALLOWED = {
    "npm is not installed": "only tests of other makers' programs need npm",
    "cannot be tried": "programs of npm come from the network, which CI need not have; `make agents` plays all of them",
    "it takes no tools of Legion's": "a property of the agent program",
    "it is described as not tried": "a property of the agent program",
    "no script of its language runs here": "Legion needs no other language than Python",
    "there are no headers of the kernel here": "they come with a compiler, which Legion does not need",
    "this kernel allows no user namespaces at all": "a setting of the kernel, which a container cannot change",
    "this user can make no cgroups here": "in many containers cgroups are read-only, for root too",
    "only root can make network namespaces": "a container may have no right to make them, for root too",
    "only root can mount a read-only folder": "a container may have no right to mount",
    "a small disk can be": "a container may have no right to mount",
    "can read no Python here": "the interpreter may be in root's home, which no other user can read",
    "no Python 3.11 that user": "the interpreter may be in root's home, which no other user can read",
    "no container can be started here": "podman needs rights that a container may lack",
    "no sandbox with a filter": "a container may allow no filter of system calls",
    "may not open 2000 files": "a limit of the machine, which a test cannot raise",
    "there is no systemd-analyze": "a container needs no systemd",
}
"""Parts of reasons, with why a machine that has all packages of `make test` may still lack it."""


def in_ci() -> bool:
    return os.environ.get("CI") == "true"


def is_allowed(reason: str) -> bool:
    return any(part in reason for part in ALLOWED)
