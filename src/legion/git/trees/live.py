"""Runs git on trees that a program may still write to, in a sandbox that shows the tree and one folder of ours.

A link out of the tree leads nowhere there, whenever it is made, so nothing else can be read by exchanging files under a
reading git. What git writes stays in that folder, the quarantine, until it was checked. No other module runs git on the
worktree of a run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import time
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from legion.git.core.command import environment, git, git_program
from legion.git.core.errors import GitError, GitTimedOut, TreeGone, TreeUnreadable
from legion.git.core.history import History
from legion.git.hub.filters import Confine, Filters
from legion.git.hub.incoming import adopt_objects, object_files
from legion.git.hub.objects import read_loose
from legion.git.hub.repository import Hub
from legion.git.trees.obstacles import MOST_ENTRIES, Obstacles, exactly, obstacles
from legion.system import process, safe_files, trees
from legion.system.process import FinishedProcess

_IDLE = 3.0
"""Seconds after which a git that does nothing waits for a named pipe, so for ever."""
_PATIENCE = 600.0
_TRIES = 3
"""Readings of a tree that changes under git: a file that shrinks ends it."""
_LONGEST_ANSWER = 256 << 20
_MOST_NOTES = 64 << 10
_NO_FSYNC = {"core.fsync": "none"}
_BATCH = """\
IFS='
'
set -f
cd "$GIT_WORK_TREE" || exit
number=0
for call do
  case $call in '?'*) [ -s "$GIT_DIR/out/$number" ] || break; call=${call#?};; esac
  number=$((number + 1))
  "$0" $call <"$GIT_DIR/in-$number" >"$GIT_DIR/out/$number"
  code=$?
  echo $code
  [ $code -le 1 ] || break
done
"""
"""Runs the calls of git that it is given, one word per line, until one fails: several for the price of one sandbox."""
_ONE = """cd "$GIT_WORK_TREE" && "$@"; echo $?"""
_RULES = "info/exclude"
_FILTER_FAILED = ("clean filter", "hung up")
"""What git says: of a command, and of a filter that is a process of its own."""
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
    made: tuple[str, ...] = ()
    """What [setup] made in it, which is no change."""
    pipes: Path | None = None
    """Where the named pipes are noted that had to be removed."""

    def refuse_gone(self) -> None:
        if self.path.is_symlink() or not self.path.is_dir():
            raise TreeGone(f"The worktree {self.path} is not a folder any more, so nothing could be read from it.")

    def ask(self, *words: str, stdin: bytes = b"", accept: tuple[int, ...] = (0,)) -> FinishedProcess:
        """One call of git that needs no index. Raises TreeUnreadable."""
        call = Call(words, stdin=stdin, accept=accept)
        with quarantine(self.hub) as place, readable(self):
            return place.read(self, lambda _: (call,), durable=False)[0][0]

    def obstacles(self, *, most: int | None) -> Obstacles:
        """Among the first `most` entries. Named pipes that git would open are removed first, and noted."""
        found = obstacles(self.path, most=most)
        if found.removed and self.pipes is not None:
            with self.pipes.open("a") as notes:
                if notes.tell() < _MOST_NOTES:
                    notes.writelines(f"{json.dumps(path)}\n" for path in found.removed)
        return found

    def removed_pipes(self) -> list[str]:
        """Those that were noted since the worktree was made."""
        if self.pipes is None or not self.pipes.exists():
            return []
        return sorted({json.loads(line) for line in self.pipes.read_text().splitlines()})


@dataclass(frozen=True)
class Call:
    """One call of git. With `if_printed` the batch ends before it where the call before printed nothing."""

    words: tuple[str, ...]
    stdin: bytes = b""
    accept: tuple[int, ...] = (0,)
    if_printed: bool = False


class Quarantine:
    """A folder with a repository of its own, which borrows from the hub: all that git writes while it reads a tree.

    Filters may run code of an agent here. So the folder itself is read-only for them. They write in four folders of
    it, where we write nothing through a link.
    """

    def __init__(self, hub: Hub, folder: Path, filters: Filters | None = None) -> None:
        self.hub = hub
        self.folder = folder
        self.filters: Filters | None = None
        self._variables: dict[str, str] = {}
        self.index = folder / "state" / "index"
        self.objects = folder / "objects"
        self.history = BorrowingHistory(hub, (self.objects,))
        for below in ("objects/pack", "refs", "info", "state", "lfs", "out"):
            (folder / below).mkdir(parents=True, exist_ok=True)
        for file in ("HEAD", "config", _RULES, "shallow"):
            with contextlib.suppress(FileNotFoundError):
                safe_files.write(folder, file, (hub.path / file).read_bytes())
        self.use(filters)

    def use(self, filters: Filters | None) -> None:
        """From now on git reads and writes files through these."""
        self.filters = filters
        self._variables = {} if filters is None else filters.furnish(self.folder)

    def put_index(self, known: Path) -> None:
        """Begin with what is known of the files. Raises FileNotFoundError."""
        content, times = known.read_bytes(), known.stat()
        trees.remove(self.index)
        safe_files.write(self.index.parent, self.index.name, content)
        # The time of an index decides which files git looks at twice, so the copy keeps it.
        os.utime(self.index, ns=(times.st_atime_ns, times.st_mtime_ns), follow_symlinks=False)

    def run(
        self,
        tree: LiveTree,
        *calls: Call,
        timeout: float = _PATIENCE,
        durable: bool = True,
        writes: bool = False,
        below: str = "",
    ) -> tuple[FinishedProcess, ...]:
        """How each call ended, to the last one or to one whose condition does not hold. Raises TreeGone, GitTimedOut,
        or GitError for an exit code that is not accepted, and where an answer is missing or too long.

        `writes`: the calls write files of the tree, in which no program is at work. `below`: they read this folder.
        """
        tree.refuse_gone()
        self._leave_out(tree)
        # A git that was killed leaves its lock. No other git works here.
        trees.remove(self.index.with_name("index.lock"))
        trees.remove(self.folder / "out")
        (self.folder / "out").mkdir()
        for number, call in enumerate(calls, start=1):
            safe_files.write(self.folder, f"in-{number}", call.stdin)
        words = ["\n".join(call.words) for call in calls]
        words = [f"?{text}" if call.if_printed else text for call, text in zip(calls, words, strict=True)]
        command = ("/bin/sh", "-c", _BATCH, git_program(), *words)
        argv, env = self._confined(tree, command, durable=durable, writable=(tree.path,) if writes else ())
        env = {**env, "GIT_WORK_TREE": str(tree.path / below)}
        began = time.monotonic()
        ended = process.run(argv, env=env, timeout=timeout, idle=None if writes else _IDLE)
        if ended.timed_out:
            raise GitTimedOut(("git", *calls[0].words), round(time.monotonic() - began))
        codes = [int(code) for code in ended.stdout.split()]
        answers: list[FinishedProcess] = []
        for number, call in enumerate(calls, start=1):
            if number > len(codes):
                if ended.code == 0 and call.if_printed and answers and not answers[-1].stdout:
                    break
                raise GitError(("git", *call.words), f"it did not run to its end ({_complaint(ended)})")
            code = codes[number - 1]
            if code not in call.accept:
                raise GitError(("git", *call.words), _complaint(ended, code))
            out = safe_files.read(self.folder, f"out/{number}", most=_LONGEST_ANSWER + 1)
            if out is None or len(out) > _LONGEST_ANSWER:
                raise GitError(("git", *call.words), "its answer is gone" if out is None else "its answer is too long")
            answers.append(FinishedProcess(argv=call.words, code=code, stdout=out, stderr=ended.stderr))
        if ended.code != 0:
            raise GitError(("git", *calls[-1].words), f"its sandbox failed ({_complaint(ended)})")
        return tuple(answers)

    def _confined(
        self, tree: LiveTree, argv: Sequence[str], *, durable: bool, writable: Sequence[Path]
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        filters = self.filters
        readable = () if filters is None else filters.readable
        ours = (self.objects, *(self.folder / name for name in ("state", "lfs", "out")))
        confine = tree.confine if filters is None else filters.source.confine
        return confine(
            argv,
            cwd=tree.path,
            env=self._environment(tree, durable=durable),
            readable=(*(() if tree.path in writable else (tree.path,)), self.hub.objects, *readable, self.folder),
            writable=(*ours, *writable),
        )

    def read(
        self,
        tree: LiveTree,
        calls: Callable[[Sequence[str]], Sequence[Call]],
        *,
        timeout: float = _PATIENCE,
        durable: bool = True,
    ) -> tuple[tuple[FinishedProcess, ...], tuple[str, ...]]:
        """How the calls ended that are made for the files which are too large to be read, and those files.

        A tree that changes meanwhile is read again. In a very large one obstacles are searched once git was slow.
        """
        most: int | None = MOST_ENTRIES
        for tries_left in reversed(range(_TRIES)):
            found = tree.obstacles(most=most)
            try:
                return self.run(tree, *calls(found.large), timeout=timeout, durable=durable), found.large
            except GitTimedOut:
                if not tries_left or most is None or tree.obstacles(most=None) == Obstacles(large=found.large):
                    raise
                most = None
            except GitError as broken:
                if not tries_left:
                    raise
                if self.filters is not None and any(sign in broken.complaint for sign in _FILTER_FAILED):
                    self.use(self.filters.forgiving)
        raise AssertionError("the last try returns or raises")

    def _leave_out(self, tree: LiveTree) -> None:
        """What [setup] made in this tree, as what it made on the target, which the hub's own rules name."""
        if tree.made:
            rules = safe_files.read(self.hub.path, _RULES) or b""
            made = b"".join(b"\n" + os.fsencode(exactly(path)) for path in tree.made if "\n" not in path)
            safe_files.write(self.folder, _RULES, rules + made)

    def _environment(self, tree: LiveTree, *, durable: bool) -> dict[str, str]:
        settings = {} if self.filters is None else self.filters.settings
        borrowed = (str(self.hub.objects), *filter(None, [self._variables.get(_BORROWED)]))
        return {
            **environment({**({} if durable else _NO_FSYNC), **settings, "lfs.storage": str(self.folder / "lfs")}),
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
        self._leave_out(tree)
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
        if self.filters is not None:
            self.filters.admit(self.folder / "lfs")

    def take_index(self, place: Path, *, checked: bool = False) -> None:
        """Keep the index: it spares the next reader all files that did not change. Not where a filter could write it,
        unless the caller checks it.
        """
        if (checked or self.filters is None) and stat.S_ISREG(self.index.lstat().st_mode):
            self.index.replace(place)


@contextlib.contextmanager
def quarantine(hub: Hub, filters: Filters | None = None) -> Iterator[Quarantine]:
    """One that is gone afterwards. A killed process leaves it to `Hub.tidy`."""
    folder = hub.path / "incoming" / uuid.uuid4().hex
    try:
        yield Quarantine(hub, folder, filters)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def readable(tree: LiveTree) -> Iterator[None]:
    """Around a reading: raises TreeUnreadable where git fails."""
    try:
        yield
    except GitError as broken:
        raise TreeUnreadable(tree.path, broken.complaint) from None


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


def _complaint(ended: FinishedProcess, code: int | None = None) -> str:
    """Why a call, or all of them, failed. The shell's code names the signal that ended a program without a message."""
    code = ended.code if code is None else code
    signal = f"git was ended by signal {code - _SIGNALS}" if code > _SIGNALS else f"exit code {code}"
    return ended.stderr.decode("utf-8", "replace").strip() or signal
