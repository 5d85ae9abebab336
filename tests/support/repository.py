"""A person's repository for a test: a real one, made by real git, with a check that can fail."""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

CHECK = """\
[checks.test]
run = "sh check.sh"

[agents]
parallel = 4
attempts = 3
"""

CHECK_SCRIPT = "! grep -rl BROKEN --include='*.txt' .\n"
"""Red as soon as any text file holds the word."""


@functools.cache
def _begun(config: str) -> Path:
    """The .git of a new repository of Ada's, made once per process: its gits take longer than a copy."""
    folder = Path(tempfile.mkdtemp(prefix="legion-git-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "init", "--quiet", "--initial-branch=main"], check=True, capture_output=True)
    # No commit starts a process that looks whether there is garbage.
    settings = {"user.name": "Ada", "user.email": "ada@example.invalid", "maintenance.auto": "false"}
    for key, value in settings.items():
        subprocess.run([*git, "config", key, value], check=True, capture_output=True)
    first = {"README.txt": "hello\n", "check.sh": CHECK_SCRIPT, "legion.toml": config}
    Repository.at(folder).commit("first", first)
    return folder / ".git"


class Repository:
    """What a person does in their own checkout."""

    def __init__(self, root: Path, config: str = CHECK) -> None:
        self.root = root
        root.mkdir(parents=True)
        shutil.copytree(_begun(config), root / ".git", ignore=shutil.ignore_patterns("index"))
        self.git("read-tree", "-u", "--reset", "HEAD")

    @classmethod
    def at(cls, root: Path) -> Repository:
        """One that is there already."""
        found = cls.__new__(cls)
        found.root = root
        return found

    def git(self, *words: str, check: bool = True) -> str:
        done = subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"git {' '.join(words)}: {done.stderr}")
        return done.stdout.strip()

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def commit(self, message: str, files: dict[str, str]) -> str:
        self.write(files)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message)
        return self.head()

    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def fingerprint(self) -> str:
        """Every byte, mode and time of the checkout and its .git."""
        digest = hashlib.sha256()
        for folder, names, files in os.walk(self.root):
            names.sort()
            for name in sorted([*names, *files]):
                path = Path(folder, name)
                facts = path.lstat()
                digest.update(f"{path.relative_to(self.root)}\0{facts.st_mode}\0{facts.st_mtime_ns}\0".encode())
                if path.is_symlink():
                    digest.update(os.fsencode(path.readlink()))
                elif path.is_file():
                    digest.update(path.read_bytes())
        return digest.hexdigest()
