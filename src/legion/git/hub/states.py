"""States of a tree that are kept outside the hub while its ticket lives, and the way of one of them into the hub."""

from __future__ import annotations

from pathlib import Path

from legion.git.core.command import git
from legion.git.hub.objects import Signature, commit_text
from legion.git.hub.repository import Hub


def holds(hub: Hub, objects: Path, tree: str) -> bool:
    """Whether the state is still there."""
    if not objects.is_dir():
        return False
    asked = git("cat-file", "-t", tree, git_dir=hub.path, objects=objects, borrow=(hub.objects,), accept=(0, 1, 128))
    return asked.text.strip() == "tree"


def bring_in(hub: Hub, objects: Path, tree: str, *, base: str, keep_as: str, message: str, author: Signature) -> str:
    """Make the state a commit on `base` that the hub keeps. The same again gives the same."""
    text = commit_text(tree=tree, parents=(base,), author=author.stamp(0), committer=author.stamp(0), message=message)

    def with_objects(*words: str, stdin: bytes) -> bytes:
        return git(*words, git_dir=hub.path, objects=objects, borrow=(hub.objects,), stdin=stdin).stdout

    commit = with_objects("hash-object", "-t", "commit", "-w", "--stdin", stdin=text).decode().strip()
    pack = with_objects("pack-objects", "--revs", "--stdout", "-q", stdin=f"{commit}\n^{base}\n".encode())
    git("unpack-objects", "-q", git_dir=hub.path, stdin=pack)
    hub.keep(keep_as, commit)
    return commit
