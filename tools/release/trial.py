"""Installs what `build.py` made, as people do, each time in a new home, without a network: the end of `make release`.

Once, with the network, the locked dependencies are fetched into dist/index. After that pip, uv, uvx and pipx have only
this folder and dist/. Each installation plays the demo. `trial.py debian`, as root, installs and removes by apt.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DIST = ROOT / "dist"
INDEX = DIST / "index"
BIN = Path(sys.executable).parent
PYTHONS = ("3.11", "3.12", "3.13")
LOCAL = ("--no-index", "--find-links", str(INDEX), "--find-links", str(DIST))
KEPT = ("PATH", "LANG", "SSL_CERT_FILE", "TMPDIR")


class Home:
    """A new home folder, and what is run in it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="trial-"))
        own = {name: os.environ[name] for name in KEPT if name in os.environ}
        self.env = own | {
            "HOME": str(self.folder),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "UV_PYTHON_DOWNLOADS": "never",
            "UV_OFFLINE": "1",
            "UV_CACHE_DIR": str(self.folder / "uv-cache"),
        }

    def run(self, *words: str | Path) -> str:
        argv = [str(word) for word in words]
        done = subprocess.run(
            argv, cwd=self.folder, env=self.env, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        if done.returncode != 0:
            raise SystemExit(f"`{' '.join(argv)}` failed:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return done.stdout

    def venv(self, python: str) -> Path:
        self.run(python, "-m", "venv", self.folder / "venv")
        return self.folder / "venv/bin"


def by_pip(python: str) -> None:
    home = Home()
    here = home.venv(python)
    home.run(here / "pip", "install", "--quiet", *LOCAL, "legionary[postgres]")
    _works(home, here / "legion")


def by_pip_from_source(python: str) -> None:
    home = Home()
    here = home.venv(python)
    home.run(here / "pip", "install", "--quiet", *LOCAL, next(DIST.glob("legionary-*.tar.gz")))
    _starts(home, here / "legion")


def by_uv(python: str) -> None:
    home = Home()
    home.run(BIN / "uv", "tool", "install", "--python", python, *LOCAL, "legionary")
    _works(home, home.folder / ".local/bin/legion")
    home.run(BIN / "uv", "tool", "uninstall", "legionary")
    _gone(home.folder / ".local/bin/legion")


def by_uvx(python: str) -> None:
    home = Home()
    _demo(home, BIN / "uvx", "--python", python, *LOCAL, "legionary")


def by_pipx(python: str) -> None:
    home = Home()
    here = home.venv(python)
    home.run(here / "pip", "install", "--quiet", *LOCAL, "pipx")
    home.run(here / "pipx", "install", "--python", python, "--pip-args", " ".join(LOCAL), "legionary")
    _works(home, home.folder / ".local/bin/legion")
    home.run(here / "pipx", "uninstall", "legionary")
    _gone(home.folder / ".local/bin/legion")


def by_apt(_python: str) -> None:
    home = Home()
    home.run("apt-get", "install", "-y", "--no-install-recommends", next(DIST.glob("legionary_*.deb")))
    _starts(home, Path("/usr/bin/legion"))
    home.run("man", "--warnings", "-w", "legion")
    home.run("apt-get", "remove", "-y", "legionary")
    _gone(Path("/usr/bin/legion"), Path("/opt/legionary"))


def _works(home: Home, program: Path) -> None:
    _starts(home, program)
    _demo(home, program)


def _starts(home: Home, program: Path) -> None:
    """The daemon too, which imports everything, on a data folder of its own."""
    version = next(DIST.glob("legionary-*.whl")).name.split("-")[1]
    if version not in home.run(program, "--version"):
        raise SystemExit(f"{program} is not version {version}.")
    home.run(program, "up")
    home.run(program, "down")


def _demo(home: Home, *program: str | Path) -> None:
    if " landed, " not in home.run(*program, "demo", "--folder", home.folder / "demo"):
        raise SystemExit("The demo did not end as it should.")


def _gone(*paths: Path) -> None:
    left = [str(path) for path in paths if path.exists()]
    if left:
        raise SystemExit(f"Left behind: {', '.join(left)}")


def fill_index(pythons: list[str]) -> None:
    """What the installations need, as each Python wants it."""
    INDEX.mkdir(exist_ok=True)
    for python in pythons:
        folder = Path(tempfile.mkdtemp(prefix="index-"))
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        fetch = (str(folder / "bin/pip"), "download", "--quiet", "--disable-pip-version-check", "-d", str(INDEX))
        for what in (
            ("--no-deps", "--require-hashes", "-r", str(ROOT / "requirements.lock")),
            ("pipx", "pip", "setuptools"),
        ):
            subprocess.run([*fetch, *what], check=True, stderr=subprocess.DEVNULL)
        shutil.rmtree(folder)


def main() -> None:
    pythons = [found for found in (shutil.which(f"python{version}") for version in PYTHONS) if found]
    missing = [version for version in PYTHONS if not shutil.which(f"python{version}")]
    if missing:
        _say(f"Left out: Python {', '.join(missing)}, which is not on PATH.")
    ways: tuple[Callable[[str], None], ...] = (by_pip, by_pip_from_source, by_uv, by_uvx, by_pipx)
    if sys.argv[1:] == ["debian"]:
        ways, pythons = (by_apt,), [sys.executable]
    else:
        fill_index(pythons)
    for python in pythons:
        for way in ways:
            begun = time.monotonic()
            way(python)
            _say(f"{Path(python).name:12} {way.__name__.replace('_', ' '):20} ok {time.monotonic() - begun:5.0f} s")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
