"""Builds candidates for landing in memory: no checkout takes part, and the same input gives the same commit.

Decides nothing about order or about what may land.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from legion.domain.landing import definition_merge
from legion.domain.landing.definition_merge import NotMergeable
from legion.domain.landing.queue import LandingMode
from legion.git.core.command import git
from legion.git.core.errors import GitError
from legion.git.core.history import trailer, with_trailers
from legion.git.hub.attribute_files import attribute_files
from legion.git.hub.objects import Signature, read_blobs, read_commit, write_commit
from legion.git.hub.repository import Hub
from legion.git.merge.conflicts import ConflictFile, read_conflicts
from legion.git.merge.partial_trees import merge_separate, with_contents
from legion.system.process import FinishedProcess


@dataclass(frozen=True, kw_only=True)
class MergeCandidate:
    """A commit that may become the target."""

    commit: str
    tree: str
    definitions: str = ""
    """Files that lines alone did not merge, each with the definitions that both sides changed."""


@dataclass(frozen=True, kw_only=True)
class MergeConflict:
    """Both sides changed the same. `tree` holds the result with conflict markers in it."""

    tree: str
    files: tuple[ConflictFile, ...]


def merge(
    hub: Hub,
    target: str,
    change: str,
    *,
    mode: LandingMode,
    message: str,
    author: Signature,
    committer: Signature,
    when: int,
    trailers: Mapping[str, str] | None = None,
    by_definition: Callable[[str], bool] | None = None,
) -> MergeCandidate | MergeConflict:
    """Put `change` on `target`. Attributes are those of the target; programs that they name never run.

    The trailers stand below the message, and below those of the commits that REBASE replays.
    A change that adds nothing gives the target itself in the modes SQUASH and REBASE. `by_definition`: the files that
    may be merged so where lines conflict, other than in mode REBASE.
    """
    stamp = committer.stamp(when)
    if mode is LandingMode.REBASE:
        if hub.merge_base(target, change) is None:
            return _unrelated(hub, target)
        commits = hub.commits_between(target, change)
        if all(len(commit.parents) == 1 for commit in commits):
            alone = [(one.commit, one.parents[0]) for one in commits]
            return reapply(hub, target, alone, committer=committer, when=when, trailers=trailers)
    merged, named = _merge_trees(hub, target, change), ""
    if isinstance(merged, MergeConflict) and by_definition is not None:
        merged, named = _by_definition(hub, target, change, merged, by_definition)
    if isinstance(merged, MergeConflict):
        return merged
    if mode is not LandingMode.MERGE and merged == hub.tree_of(target):
        return MergeCandidate(commit=target, tree=merged)
    commit = write_commit(
        hub,
        tree=merged,
        parents=(target, change) if mode is LandingMode.MERGE else (target,),
        author=author.stamp(when),
        committer=stamp,
        message=with_trailers(
            message.encode("utf-8", "replace"), {**(trailers or {}), **({MERGED: named} if named else {})}
        ),
    )
    return MergeCandidate(commit=commit, tree=merged, definitions=named)


MERGED = "Merged-By-Definition"


def merged_by_definition(hub: Hub, commit: str) -> str:
    """The files of a landed change that were, each with its definitions; empty for none."""
    return trailer(read_commit(hub, commit).message, MERGED)


def _by_definition(
    hub: Hub, target: str, change: str, found: MergeConflict, may: Callable[[str], bool]
) -> tuple[str | MergeConflict, str]:
    """The tree in which every file in conflict is merged by definition, and which ones; else a conflict of the files
    that are left, each with the reason.
    """
    base, made, named, open_files = hub.merge_base(target, change), dict[str, bytes](), [], []
    for file in found.files:
        try:
            if base is None or not file.marked or not may(file.path):
                raise NotMergeable("only lines are merged here")
            sides = [hub.read_file(commit, file.path) for commit in (base, target, change)]
            one = definition_merge.merged(file.path, *((side or b"").decode() for side in sides))
            made[file.path] = one.text.encode()
            named.append(f"{file.path}: {', '.join(filter(None, one.names)) or 'lines'}")
        except UnicodeDecodeError:
            open_files.append(file)
        except NotMergeable as refused:
            open_files.append(replace(file, refused=str(refused)))
    tree = with_contents(hub, found.tree, made) if made else found.tree
    return (replace(found, tree=tree, files=tuple(open_files)), "") if open_files else (tree, "; ".join(named))


_UNRELATED = "refusing to merge unrelated histories"
_NO_COMMON_HISTORY = ConflictFile(
    path="all files", hunks="The branch was rewritten meanwhile: the change and the target share no history."
)


def merge_person(
    hub: Hub, target: str, person: str, *, message: str, author: Signature, when: int
) -> MergeCandidate | MergeConflict | None:
    """The person's own commits on the target: their tip itself where it holds the target, None if nothing is new."""
    if hub.is_ancestor(person, target):
        return None
    if hub.is_ancestor(target, person):
        return MergeCandidate(commit=person, tree=hub.tree_of(person))
    return merge(
        hub, target, person, mode=LandingMode.MERGE, message=message, author=author, committer=author, when=when
    )


def revert(
    hub: Hub, target: str, landed: str, before: str, *, message: str, author: Signature, when: int
) -> MergeCandidate | MergeConflict | None:
    """A commit on `target` that reverts the change between `before` and `landed`; None if nothing of it is left."""
    stamp = author.stamp(when)

    def stand_in(tree: str, *parents: str) -> str:
        return write_commit(hub, tree=tree, parents=parents, author=stamp, committer=stamp, message="stand-in")

    # Seen from what landed, the target has gone on and `before` is the other side.
    base = stand_in(hub.tree_of(landed))
    tree = hub.tree_of(target)
    merged = _merge_trees(hub, stand_in(tree, base), stand_in(hub.tree_of(before), base))
    if isinstance(merged, MergeConflict):
        return merged
    if merged == tree:
        return None
    commit = write_commit(hub, tree=merged, parents=(target,), author=stamp, committer=stamp, message=message)
    return MergeCandidate(commit=commit, tree=merged)


def reapply(
    hub: Hub,
    target: str,
    changes: Iterable[tuple[str, str]],
    *,
    committer: Signature,
    when: int,
    trailers: Mapping[str, str] | None = None,
) -> MergeCandidate | MergeConflict:
    """Put changes on another target, one commit each, with the message and the author that they have.

    A change is the commit that holds it and the one that it was put on. One that is on the target already adds nothing.
    """
    stamp = committer.stamp(when)

    def stand_in(tree: str, parent: str) -> str:
        return write_commit(hub, tree=tree, parents=(parent,), author=stamp, committer=stamp, message="stand-in")

    at, tree = target, hub.tree_of(target)
    for commit, before in changes:
        text = read_commit(hub, commit)
        # Two commits on `before` make it the base of the merge.
        change = commit if text.parents == (before,) else stand_in(hub.tree_of(commit), before)
        merged = _merge_trees(hub, stand_in(tree, before), change)
        if isinstance(merged, MergeConflict):
            return merged
        if merged == tree:
            continue
        at = write_commit(
            hub,
            tree=merged,
            parents=(at,),
            author=text.author,
            committer=stamp,
            message=with_trailers(text.message, trailers or {}),
            encoding=text.encoding,
        )
        tree = merged
    return MergeCandidate(commit=at, tree=tree)


def _merge_trees(hub: Hub, target: str, change: str) -> str | MergeConflict:
    """The merged tree, or what stands against it."""
    separate = merge_separate(hub, target, change)
    if separate is not None:
        return separate
    attributes = attribute_tree(hub, target)
    try:
        answer = _merge_tree(hub, hub.path, attributes, target, change)
    except GitError as error:
        if _UNRELATED in error.complaint:
            return _unrelated(hub, target)
        raise
    if answer.code != 0:
        # Again, for markers that name the sides and not their ids; most merges are clean and never get here.
        with _named_sides(hub, target=target, change=change) as git_dir:
            answer = _merge_tree(hub, git_dir, attributes, "target", "change")
    tree, _, rest = answer.stdout.partition(b"\0")
    if answer.code == 0:
        return tree.decode()
    return MergeConflict(tree=tree.decode(), files=read_conflicts(hub, tree.decode(), rest))


def _merge_tree(hub: Hub, git_dir: Path, attributes: Path, target: str, change: str) -> FinishedProcess:
    words = ("merge-tree", "--write-tree", "-z", "--messages", target, change)
    return git(*words, git_dir=git_dir, work_tree=attributes, objects=hub.objects, accept=(0, 1))


def _unrelated(hub: Hub, target: str) -> MergeConflict:
    return MergeConflict(tree=hub.tree_of(target), files=(_NO_COMMON_HISTORY,))


@contextlib.contextmanager
def _named_sides(hub: Hub, *, target: str, change: str) -> Iterator[Path]:
    """A repository with two branches over the hub's objects, so that conflict markers say `target` and `change`."""
    place = hub.path / "merging" / uuid.uuid4().hex
    heads = place / "refs/heads"
    heads.mkdir(parents=True)
    try:
        (heads / "target").write_text(f"{target}\n")
        (heads / "change").write_text(f"{change}\n")
        (place / "HEAD").write_text("ref: refs/heads/target\n")
        shutil.copyfile(hub.path / "config", place / "config")
        yield place
    finally:
        shutil.rmtree(place)


# Attributes for merging, taken from a commit and not from any checkout.
#
# git reads .gitattributes from a work tree, so a folder that holds nothing else is made from the commit. Merge drivers
# with a program behind them become "no automatic merge": a file that both sides changed is then a conflict.

_CUSTOM_DRIVER = re.compile(rb"(?<=[ \t])merge=(?!(?:union|binary|text)(?:\s|$))\S+")


def attribute_tree(hub: Hub, commit: str) -> Path:
    """A folder with the .gitattributes files of `commit`; the same files give the same folder."""
    return _write(hub, sorted(attribute_files(hub, commit).items()))


def _write(hub: Hub, found: list[tuple[bytes, str]]) -> Path:
    key = hashlib.sha256(b"".join(b"%s %s\0" % (blob.encode(), path) for path, blob in found)).hexdigest()
    place = hub.path / "attributes" / key
    if place.is_dir():
        return place
    half = place.with_name(f"{key}.{uuid.uuid4().hex}")
    half.mkdir(parents=True)
    # A folder that holds something is never replaced by a rename while another git is standing in it.
    (half / ".gitattributes").touch()
    for (path, _), content in zip(found, read_blobs(hub, [blob for _, blob in found]), strict=True):
        file = half / os.fsdecode(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_CUSTOM_DRIVER.sub(b"-merge", content))
    try:
        half.rename(place)
    except OSError:
        # Another thread made the same folder first.
        shutil.rmtree(half)
        if not place.is_dir():
            raise
    return place
