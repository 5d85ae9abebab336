"""A person with a repository, a plan and a Legion of their own, who types commands."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import TextIO

import psutil

from tests.support.codebase import SOURCE
from tests.support.legion import Squad
from tests.support.settings import without_trial
from tests.support.stand_in import build
from tests.support.warm import Forked, warm

PATIENCE = 280

SETTINGS = '[daemon]\nport = 21000\n\n[sandbox]\nenv = ["LANG", "STAND_IN_THINKS"]\n'
CONFIG = """\
[checks.test]
run = "sh check.sh"

[agents]
parallel = 4
attempts = 3
"""
PLAN = """\
[[ticket]]
key = "schema"
title = "Tables for users"
files = ["one.py"]

[[ticket]]
key = "login"
title = "A page to log in"
text = "With a form."
after = ["schema"]

[[ticket]]
key = "mail"
title = "Send letters"
files = ["two.py"]
prove = ["false"]

[[ticket]]
key = "all"
title = "Everything is there"
checkpoint = true
after = ["login", "mail"]
"""


def environment(home: Path) -> dict[str, str]:
    """A person with a home of their own, who has never used Legion."""
    home.mkdir(exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LEGION_", "XDG_"))}
    return {**kept, "HOME": str(home), "PYTHONPATH": str(SOURCE.parent), "TERM": "xterm", "LANG": "C.UTF-8"}


def living(*folders: Path) -> list[psutil.Process]:
    """Processes that work in the folders or name them, after those that are ending had time to end."""
    mine = []
    for process in psutil.process_iter():
        try:
            named = [*process.cmdline(), process.cwd()]
        except psutil.Error:
            continue
        if process.pid != os.getpid() and any(str(folder) in one for folder in folders for one in named):
            mine.append(process)
    _, left = psutil.wait_procs(mine, timeout=20)
    return left


def run_forked(words: Sequence[str], env: Mapping[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """`legion WORDS`, forked from the warm process where the environment allows it."""
    if (source := warm(SOURCE.parent)).fits(env):
        return source.run("legion", words, env, cwd, stdin="", patience=PATIENCE)
    argv = [sys.executable, "-m", "legion", *words]
    return subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, timeout=PATIENCE)


def git(repository: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=repository, check=True, capture_output=True, text=True).stdout


@dataclass(frozen=True)
class Person:
    folder: Path
    thinks: float = 0.0
    """Seconds for which the stand-in of Claude Code waits before each request."""
    daemons: list[Squad] = field(default_factory=list)

    @property
    def repository(self) -> Path:
        return self.folder / "letters"

    @property
    def temporary(self) -> Path:
        """Where rehearsals may leave something, if they do."""
        return self.folder / "tmp"

    def settle(self, check: str = "true", attempts: int = 3) -> Person:
        """A repository with a check, and a plan next to it."""
        self.repository.mkdir()
        self.temporary.mkdir()
        for name, text in {
            "legion.toml": CONFIG.replace("attempts = 3", f"attempts = {attempts}"),
            "check.sh": f"{check}\n",
            "one.py": "ONE = 1\n",
            "two.py": "TWO = 2\n",
        }.items():
            (self.repository / name).write_text(text)
        git(self.repository, "init", "--quiet", "--initial-branch=main")
        git(self.repository, "config", "user.name", "Ada")
        git(self.repository, "config", "user.email", "ada@example.invalid")
        git(self.repository, "add", "--all")
        git(self.repository, "commit", "--quiet", "--message", "first")
        (self.folder / "plan.toml").write_text(dedent(PLAN))
        (self.folder / "config.toml").write_text(without_trial(SETTINGS))
        return self

    @property
    def env(self) -> dict[str, str]:
        own = {"LEGION_DATA_DIR": "data", "LEGION_CONFIG": "config.toml", "TMPDIR": "tmp"}
        env = environment(self.folder / "home") | {name: str(self.folder / place) for name, place in own.items()}
        return env | {"PATH": build.path(), "STAND_IN_THINKS": str(self.thinks)}

    def types(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A forked command: what it imports, and how it starts a daemon by itself, are other tests' matters."""
        return run_forked(arguments, self.env, self.repository)

    def starts(self, *arguments: str) -> tuple[Forked, TextIO]:
        """As `types`, without waiting for its end: the process, and what it prints."""
        reading, writing = os.pipe()
        process = warm(SOURCE.parent).start("legion", arguments, self.env, self.repository, {1: writing})
        os.close(writing)
        return process, os.fdopen(reading)

    def trusts(self) -> Person:
        """Their daemon is a forked one: how a command starts it is another test's matter."""
        self.daemons.append(Squad(self.folder, settings=SETTINGS).start(self.env))
        for arguments in (("init",), ("trust",)):
            done = self.types(*arguments)
            assert done.returncode == 0, done.stderr
        return self

    def leave(self) -> None:
        self.types("down")
        for daemon in self.daemons:
            daemon.close()

    def fingerprint(self) -> tuple[str, ...]:
        """Everything of the repository that a person can see."""
        files = sorted(path for path in self.repository.rglob("*") if path.is_file())
        seen = (f"{path} {path.stat().st_mtime_ns} {path.stat().st_nlink}" for path in files)
        return (*seen, git(self.repository, "for-each-ref"), git(self.repository, "worktree", "list"))
