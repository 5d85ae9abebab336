"""The .gitattributes files of a commit, read from the repository and from no checkout, and what git makes of them."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from legion.git.core.command import fields, git
from legion.git.core.history import History, TreeEntry
from legion.system.process import run

_NAME = b".gitattributes"
EVERYWHERE = ":(top,glob)**/.gitattributes"
"""Matches all of them."""
# The id of the tree without files, by the length of ids in the repository.
EMPTY_TREE = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
Difference = tuple[bytes, TreeEntry | None, TreeEntry | None]
"""A path, and what is there in one tree and in the other."""
PLAIN_FILE = (b"100644", b"100755")
_KNOWN: dict[Path, tuple[str, Mapping[bytes, str]]] = {}
"""By repository: the tree that was asked for last. Targets follow each other, and the way to the next is short."""


def attribute_files(repository: History, commit: str) -> Mapping[bytes, str]:
    """Path and id of each; links and what git would not check out are left out."""
    tree = repository.tree_of(commit)
    known = _KNOWN.get(repository.path)
    if known is not None and known[0] == tree:
        return known[1]
    found = (
        with_differences(known[1], repository.differences(known[0], tree))
        if known is not None
        else _all(repository, tree)
    )
    _KNOWN[repository.path] = (tree, found)
    return found


def with_differences(before: Mapping[bytes, str], differences: Iterable[Difference]) -> Mapping[bytes, str]:
    """Those of a tree that differs so from the tree of `before`."""
    found = dict(before)
    for path, _, new in differences:
        if names_attributes(path):
            found.pop(path, None)
            if new is not None and _is_plain(new, path):
                found[path] = new.id
    return found


def names_attributes(path: bytes) -> bool:
    return path.rpartition(b"/")[2] == _NAME


def filter_attributes(
    git_dir: Path, stores: Sequence[Path], files: Mapping[bytes, str], paths: Iterable[bytes], *, everywhere: str
) -> dict[bytes, str]:
    """What git says of the attribute `filter` of each path where these attribute files are there, whose content is in
    one of the stores. Those of the repository `git_dir` count, too, and the text of those for all repositories.
    """
    asked = b"".join(path + b"\0" for path in paths)
    if not asked:
        return {}
    with tempfile.TemporaryDirectory(prefix="legion-attributes-") as scratch:
        own, index = Path(scratch, "attributes"), Path(scratch, "index")
        own.write_bytes(os.fsencode(everywhere))

        def ask(*words: str, stdin: bytes) -> bytes:
            return git(
                *words,
                git_dir=git_dir,
                index=index,
                objects=stores[0],
                borrow=stores[1:],
                stdin=stdin,
                settings={"core.attributesFile": str(own)},
            ).stdout

        entries = (b"100644 %s\t%s\0" % (id.encode(), path) for path, id in files.items())
        ask("update-index", "-z", "--index-info", stdin=b"".join(entries))
        answer = fields(ask("check-attr", "--cached", "-z", "--stdin", "filter", stdin=asked))
    return {path: os.fsdecode(value) for path, value in zip(answer[::3], answer[2::3], strict=True)}


def attribute_texts(history: History, commit: str) -> list[str]:
    """The texts of the attribute files in a commit, outer folders first."""
    files = sorted(attribute_files(history, commit).items(), key=lambda file: (file[0].count(b"/"), file[0]))
    return [os.fsdecode(history.content(blob)) for _, blob in files]


@dataclass(frozen=True, kw_only=True)
class PersonAttributes:
    """The texts of the person's own attribute files."""

    everywhere: str
    """For all repositories, those of the system first."""
    here: str
    """Of this repository alone, which goes before all others."""


def person_attributes(common_dir: Path) -> PersonAttributes:
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "git"
    places = (common_dir / "config", Path.home() / ".gitconfig", home / "config", Path("/etc/gitconfig"))
    named = _attributes_setting(common_dir, tuple(_changed(place) for place in places))
    everywhere = Path(named).expanduser() if named else home / "attributes"
    texts = (_text(Path("/etc/gitattributes")), _text(everywhere))
    return PersonAttributes(everywhere="\n".join(texts), here=_text(common_dir / "info" / "attributes"))


@functools.lru_cache(maxsize=64)
def _attributes_setting(common_dir: Path, changed: tuple[int, ...]) -> str:
    """Asked again once one of the files with settings was changed."""
    return person_settings(common_dir, r"^core\.attributesfile$").get("core.attributesfile", "")


def _changed(file: Path) -> int:
    return file.stat().st_mtime_ns if file.is_file() else 0


def _text(file: Path) -> str:
    return os.fsdecode(file.read_bytes()) if file.is_file() else ""


def person_settings(common_dir: Path, names: str) -> dict[str, str]:
    """By an ordinary git of the person, which only reads; the last value of a name counts."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or "CONFIG" in name}
    words = ("git", "config", "-z", "--get-regexp", names)
    answer = run(words, env={**env, "GIT_DIR": str(common_dir), "LC_ALL": "C"})
    pairs = (one.partition(b"\n") for one in fields(answer.stdout))
    return {os.fsdecode(key): os.fsdecode(value) for key, _, value in pairs}


def _all(repository: History, tree: str) -> Mapping[bytes, str]:
    words = ("--no-literal-pathspecs", "diff-tree", "-r", "-z", "--raw", "--no-renames")
    raw = fields(git(*words, EMPTY_TREE[len(tree)], tree, "--", EVERYWHERE, git_dir=repository.path).stdout)
    found = {}
    for facts, path in zip(raw[::2], raw[1::2], strict=True):
        _, mode, _, blob, _ = facts.lstrip(b":").split(b" ")
        if _is_plain(TreeEntry(mode, blob.decode()), path):
            found[path] = blob.decode()
    return found


def _is_plain(entry: TreeEntry, path: bytes) -> bool:
    return entry.mode in PLAIN_FILE and not {b"", b".", b"..", b".git"} & set(path.split(b"/"))
