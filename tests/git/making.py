"""Small builders for the tests of the git room: a person with a repository, a hub, a process that dies on order."""

from __future__ import annotations

import os
import signal
import stat
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from legion.git.hub.objects import Signature
from legion.git.hub.repository import Hub
from legion.git.trees.snapshots import TreeSnapshot, snapshot
from legion.git.trees.worktrees import Worktrees
from legion.system import crash
from legion.system.process import FinishedProcess, run
from tests.support.live_trees import live

AGENT = Signature(name="An Agent", email="agent@example.org")
LEGION = Signature(name="Legion", email="legion@example.org")
WHEN = 1_700_000_000


class Person:
    """Somebody with a repository, who uses git as people do."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    @classmethod
    def with_repository(cls, path: Path, *options: str) -> Person:
        person = cls(path)
        person.git("init", "-q", "-b", "main", *options)
        person.git("config", "user.name", "Pat")
        person.git("config", "user.email", "pat@example.org")
        return person

    @property
    def git_dir(self) -> Path:
        return self.path / ".git"

    def git(self, *args: str | Path, accept: tuple[int, ...] = (0,), env: Mapping[str, str] | None = None) -> str:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        clean |= {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent", **(env or {})}
        finished = run(("git", *args), cwd=self.path, env=clean)
        assert finished.code in accept, f"git {args}: {finished.complaint}"
        return finished.stdout.decode("utf-8", "surrogateescape").strip()

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def commit(self, files: Mapping[str, str | bytes | None], message: str = "a commit") -> str:
        """Write (or with None delete) files and commit everything."""
        for name, content in files.items():
            if content is None:
                (self.path / name).unlink()
            else:
                self.write(name, content)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.head

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def files(self) -> list[str]:
        return self.git("ls-files").splitlines()


def change(hub: Hub, base: str, files: Mapping[str, str | bytes | None], scratch: Path, message: str = "change") -> str:
    """A commit on `base` in the hub, made without any agent."""
    tree = scratch / f"change-{os.urandom(6).hex()}"
    agent = Person(tree)
    agent.git("init", "-q")
    (tree / ".git/objects/info/alternates").write_text(f"{hub.objects}\n")
    agent.git("reset", "-q", "--hard", base)
    for name, content in files.items():
        (tree / name).unlink() if content is None else agent.write(name, content)
    return save(hub, tree, scratch / f"{tree.name}.index", parent=base, message=message).commit


def save(
    hub: Hub, tree: Path, index: Path, *, parent: str, message: str = "saved", timeout: float = 60
) -> TreeSnapshot:
    return snapshot(live(hub, tree), index, parent=parent, message=message, author=AGENT, when=WHEN, timeout=timeout)


class Grounds:
    """A project as Legion sees it: the person's repository, the hub, the worktrees."""

    def __init__(self, folder: Path, person: Person) -> None:
        self.folder = folder
        self.person = person
        is_new = not (folder / "hub.git").exists()
        self.hub = Hub.create(person.git_dir, folder / "hub.git")
        if is_new:
            self.hub.start_target(self.hub.fetch_person(person.git_dir, "main"))
        self.trash = folder / "trees/.trash"
        self.side = folder / "side"
        self.worktrees = self.open()

    def open(self) -> Worktrees:
        """The worktrees, as a daemon that has just started sees them."""
        return Worktrees(self.hub, self.folder / "trees", self.trash, self.side)

    @property
    def target(self) -> str:
        target = self.hub.target()
        assert target is not None
        return target

    def agent(self, name: str = "1", commit: str | None = None) -> Person:
        """Somebody who works in a worktree."""
        return Person(self.worktrees.acquire(name, commit or self.target, f"legion/{name}"))

    def save(self, name: str = "1", *, parent: str | None = None, timeout: float = 60) -> TreeSnapshot:
        path, index = self.worktrees.path(name), self.worktrees.index(name)
        return save(self.hub, path, index, parent=parent or self.target, timeout=timeout)

    def names_in(self, tree: str) -> list[str]:
        finished = run(("git", "ls-tree", "-r", "-z", "--name-only", tree), cwd=self.hub.path)
        return [os.fsdecode(name) for name in finished.stdout.split(b"\0") if name]


def in_tree(path: Path) -> Callable[[Sequence[str]], FinishedProcess]:
    """Stands for the sandbox: runs a command in the worktree and hands its output over."""
    return lambda argv: run(argv, cwd=path, env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})


def dies_at(point: crash.Point, act: Callable[[], object]) -> bool:
    """Run `act` in a process that is killed when it reaches the point. Whether it was."""
    child = os.fork()
    if child == 0:
        code = 3
        try:
            crash.arm(point)
            act()
            code = 0
        except BaseException:  # the child must never run on as a second pytest
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0, "the act failed before it reached the point"
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def as_user(user: int, act: Callable[[], str]) -> str:
    """What `act` says when an ordinary user does it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            os.write(writing, act().encode())
        except BaseException:  # the child must never run on as a second pytest
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as said:
        return said.read()


def photograph(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file below a folder with mode, time of change and content: equal pictures mean untouched."""
    picture = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        facts = path.lstat()
        content = b""
        if stat.S_ISREG(facts.st_mode):
            content = path.read_bytes()
        elif stat.S_ISLNK(facts.st_mode):
            content = os.fsencode(path.readlink())
        picture[str(path)] = (facts.st_mode, facts.st_mtime_ns, content)
    return picture


def program(path: Path, proof: Path) -> Path:
    """A program that shows, by a file, that somebody ran it."""
    path.write_text(f"#!/bin/sh\necho ran >> {proof}\ncat\n")
    path.chmod(0o755)
    return path
