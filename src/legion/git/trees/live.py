"""Runs git on trees that a program may still write to, in a sandbox that shows the tree and one folder of ours.

A link out of the tree leads nowhere there, whenever it is made, so nothing else can be read by exchanging files under a
reading git. What git writes stays in that folder, the quarantine, until it was checked. No other module runs git on the
worktree of a run.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import time
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from legion.git.core.command import environment, git, git_program
from legion.git.core.errors import GitError, GitTimedOut, TreeGone, TreeUnreadable
from legion.git.core.history import History
from legion.git.hub.filters import Confine, Filters
from legion.git.hub.incoming import adopt_objects, object_files
from legion.git.hub.objects import read_loose
from legion.git.hub.repository import Hub
from legion.git.trees.obstacles import MOST_ENTRIES, obstacles
from legion.system import process, safe_files
from legion.system.process import FinishedProcess

_IDLE = 3.0
"""Seconds after which a git that does nothing waits for a named pipe, so for ever."""
_NO_FSYNC = {"core.fsync": "none"}
_BATCH = """\
IFS='
'
set -f
cd "$GIT_WORK_TREE" || exit
number=0
for call do
  case $call in '?'*) [ -s "$GIT_DIR/out-$number" ] || break; call=${call#?};; esac
  number=$((number + 1))
  "$0" $call <"$GIT_DIR/in-$number" >"$GIT_DIR/out-$number"
  code=$?
  echo $code
  [ $code -le 1 ] || break
done
"""
"""Runs the calls of git that it is given, one word per line, until one fails: several for the price of one sandbox."""
_ONE = """cd "$GIT_WORK_TREE" && "$@"; echo $?"""
_CHUNK = 1 << 20
_SHA1_DIGITS = 40
_SIGNALS = 128
_BORROWED = "GIT_ALTERNATE_OBJECT_DIRECTORIES"


@dataclass(frozen=True, kw_only=True)
class LiveTree:
    """The files of a run's worktree, which its program may change at any time."""

    hub: Hub
    path: Path
    confine: Confine

    def refuse_gone(self) -> None:
        if self.path.is_symlink() or not self.path.is_dir():
            raise TreeGone(f"The worktree {self.path} is not a folder any more, so nothing could be read from it.")

    def ask(self, *words: str, stdin: bytes = b"", accept: tuple[int, ...] = (0,)) -> FinishedProcess:
        """One call of git that needs no index. Raises TreeUnreadable."""
        call = Call(words, stdin=stdin, accept=accept)
        complaint = ""
        with quarantine(self.hub) as place:
            for most in (MOST_ENTRIES, None):
                obstacles(self.path, most=most)
                try:
                    return place.run(self, call, durable=False)[0]
                except GitError as broken:
                    complaint = broken.complaint
        raise TreeUnreadable(self.path, complaint)


@dataclass(frozen=True)
class Call:
    """One call of git. With `if_printed` the batch ends before it where the call before printed nothing."""

    words: tuple[str, ...]
    stdin: bytes = b""
    accept: tuple[int, ...] = (0,)
    if_printed: bool = False


class Quarantine:
    """A folder with a repository of its own, which borrows from the hub: all that git writes while it reads a tree."""

    def __init__(self, hub: Hub, folder: Path, filters: Filters | None = None) -> None:
        self.hub = hub
        self.folder = folder
        self.filters: Filters | None = None
        self._variables: dict[str, str] = {}
        self.index = folder / "index"
        self.objects = folder / "objects"
        self.history = BorrowingHistory(hub, (self.objects,))
        for below in ("objects/pack", "refs", "info"):
            (folder / below).mkdir(parents=True, exist_ok=True)
        for file in ("HEAD", "config", "info/exclude"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(hub.path / file, folder / file)
        self.use(filters)

    def use(self, filters: Filters | None) -> None:
        """From now on git reads and writes files through these."""
        self.filters = filters
        self._variables = {} if filters is None else filters.furnish(self.folder)

    def run(
        self, tree: LiveTree, *calls: Call, timeout: float = 600.0, durable: bool = True, writes: bool = False
    ) -> tuple[FinishedProcess, ...]:
        """How each call ended. Raises TreeGone, GitTimedOut, or GitError for an exit code that is not accepted.

        `writes`: the calls write files of the tree, in which no program is at work.
        """
        tree.refuse_gone()
        # A git that was killed leaves its lock. No other git works here.
        (self.folder / "index.lock").unlink(missing_ok=True)
        for number, call in enumerate(calls, start=1):
            (self.folder / f"in-{number}").write_bytes(call.stdin)
            (self.folder / f"out-{number}").unlink(missing_ok=True)
        words = ["\n".join(call.words) for call in calls]
        words = [f"?{text}" if call.if_printed else text for call, text in zip(calls, words, strict=True)]
        command = ("/bin/sh", "-c", _BATCH, git_program(), *words)
        argv, env = self._confined(tree, command, durable=durable, writable=(tree.path,) if writes else ())
        began = time.monotonic()
        ended = process.run(argv, env=env, timeout=timeout, idle=None if writes else _IDLE)
        if ended.timed_out:
            raise GitTimedOut(("git", *calls[0].words), round(time.monotonic() - began))
        codes = [int(code) for code in ended.stdout.split()]
        answers = []
        for number, (call, code) in enumerate(zip(calls, codes, strict=False), start=1):
            if code not in call.accept:
                raise GitError(("git", *call.words), ended.stderr.decode("utf-8", "replace").strip() or _killed(code))
            out = safe_files.read(self.folder, f"out-{number}") or b""
            answers.append(FinishedProcess(argv=call.words, code=code, stdout=out, stderr=ended.stderr))
        if not answers:
            raise GitError(("git", *calls[0].words), ended.complaint)
        return tuple(answers)

    def _confined(
        self, tree: LiveTree, argv: Sequence[str], *, durable: bool, writable: Sequence[Path]
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        filters = self.filters
        readable, store = ((), ()) if filters is None else (filters.readable, (filters.lfs,))
        confine = tree.confine if filters is None else filters.source.confine
        return confine(
            argv,
            cwd=tree.path,
            env=self._environment(tree, durable=durable),
            readable=(*(() if tree.path in writable else (tree.path,)), self.hub.objects, *readable),
            writable=(self.folder, *writable, *store),
        )

    def _environment(self, tree: LiveTree, *, durable: bool) -> dict[str, str]:
        settings = {} if self.filters is None else self.filters.settings
        borrowed = (str(self.hub.objects), *filter(None, [self._variables.get(_BORROWED)]))
        return {
            **environment({**({} if durable else _NO_FSYNC), **settings}),
            **self._variables,
            "GIT_DIR": str(self.folder),
            "GIT_WORK_TREE": str(tree.path),
            "GIT_INDEX_FILE": str(self.index),
            _BORROWED: os.pathsep.join(borrowed),
        }

    def prefix(self, tree: LiveTree, *, store: Path) -> tuple[tuple[str, ...], Mapping[str, str]]:
        """How another process runs git on the tree: what its command line begins with, and its environment.

        The last line of the output is git's exit code. That process names an index and objects in the folder `store`.
        """
        argv, env = self._confined(tree, ("/bin/sh", "-c", _ONE, "sh"), durable=False, writable=(store,))
        return tuple(argv), env

    def admit(self) -> None:
        """Move the objects into the hub. Raises GitError where one of them is not what its name says."""
        for file in object_files(self.objects):
            if file.suffix == ".idx":
                git("verify-pack", file, git_dir=self.hub.path)
            elif file.parent.name != "pack" and not _is_sound(file):
                raise GitError(("git", "add"), f"it wrote a damaged object {file.parent.name}{file.name}")
        adopt_objects(self.objects, self.hub.objects)

    def take_index(self, place: Path) -> None:
        """Keep the index: it spares the next reader all files that did not change."""
        if stat.S_ISREG(self.index.lstat().st_mode):
            self.index.replace(place)


@contextlib.contextmanager
def quarantine(hub: Hub, filters: Filters | None = None) -> Iterator[Quarantine]:
    """One that is gone afterwards. A killed process leaves it to `Hub.tidy`."""
    folder = hub.path / "incoming" / uuid.uuid4().hex
    try:
        yield Quarantine(hub, folder, filters)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class BorrowingHistory(History):
    """The objects of the hub, and those in folders next to it."""

    def __init__(self, hub: Hub, stores: Sequence[Path]) -> None:
        super().__init__(hub.path)
        self._hub = hub
        self._stores = tuple(stores)

    def content(self, object: str) -> bytes:
        found = next((raw for store in self._stores if (raw := read_loose(store, object))), b"")
        return found.partition(b"\0")[2] if found else self._hub.content(object)

    def _git(
        self, *args: str | os.PathLike[str], stdin: bytes = b"", accept: tuple[int, ...] = (0,)
    ) -> FinishedProcess:
        first, *others = (*self._stores, self._hub.objects)
        return git(*args, git_dir=self.path, objects=first, borrow=others, stdin=stdin, accept=accept)


def _is_sound(file: Path) -> bool:
    """Whether a loose object has the content that its name stands for."""
    name = file.parent.name + file.name
    digest = hashlib.sha1(usedforsecurity=False) if len(name) == _SHA1_DIGITS else hashlib.sha256()
    inflating = zlib.decompressobj()
    try:
        with file.open("rb") as stored:
            while piece := inflating.unconsumed_tail or stored.read(_CHUNK):
                digest.update(inflating.decompress(piece, _CHUNK))
    except zlib.error:
        return False
    return digest.hexdigest() == name


def _killed(code: int) -> str:
    """How the shell's code names the end of a program that said nothing."""
    return f"git was ended by signal {code - _SIGNALS}" if code > _SIGNALS else f"exit code {code}"
