"""`legion update` and `legion uninstall`: what is on this machine by Legion, and how this installation was made."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import click

from legion import __version__
from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import count, progress, sanitize, size
from legion.client.discovery import is_remote
from legion.client.legion import Legion
from legion.client.start import stop
from legion.system.paths import DataDir, user_cache_dir, user_config_file
from legion.system.supervisors import ServiceFile, ServiceHost, daemon_service
from legion.wire.board import ProjectLine
from legion.wire.errors import BadInput, LegionError, NotAllowed, StateConflict
from legion.wire.projects import Done, WorktreeList

_NOT_LANDED = ("failed", "stopped", "parked")
_PACKAGE = "legionary"
_LEGION = (sys.executable, "-m", "legion")
"""This installation, which PATH need not name."""
_CHANGES = "CHANGELOG.md"
_LONGEST = 300
_OF_APT = Path("/opt/legionary/venv")


@dataclass(frozen=True, kw_only=True)
class Installer:
    """The program that installed this one, and its words."""

    name: str
    update: tuple[tuple[str, ...], ...]
    remove: tuple[str, ...]


def installer() -> Installer:
    """By the traces that each leaves in the environment."""
    prefix = Path(sys.prefix)
    if (prefix / "uv-receipt.toml").exists():
        uv = ("uv", "tool")
        return Installer(name="uv", update=((*uv, "upgrade", _PACKAGE),), remove=(*uv, "uninstall", _PACKAGE))
    if (prefix / "pipx_metadata.json").exists():
        return Installer(name="pipx", update=(("pipx", "upgrade", _PACKAGE),), remove=("pipx", "uninstall", _PACKAGE))
    if prefix == _OF_APT:
        apt = ("sudo", "apt-get")
        newer = (*apt, "install", "--only-upgrade", _PACKAGE)
        return Installer(name="apt", update=((*apt, "update"), newer), remove=(*apt, "remove", _PACKAGE))
    if clone := _clone():
        make = ("make", "-C", str(clone), ".venv/run.stamp")
        return Installer(
            name=f"make, in {clone}",
            update=(("git", "-C", str(clone), "pull", "--ff-only"), make),
            remove=("rm", "-r", str(clone / ".venv")),
        )
    pip = (sys.executable, "-m", "pip")
    return Installer(
        name=f"pip, in {prefix}",
        update=((*pip, "install", "--upgrade", _PACKAGE),),
        remove=(*pip, "uninstall", _PACKAGE),
    )


def _clone() -> Path | None:
    """The checkout that is installed in place."""
    try:
        origin = json.loads(distribution(_PACKAGE).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return None
    url = str(origin.get("url", ""))
    return Path(url.removeprefix("file://")) if origin.get("dir_info", {}).get("editable") else None


@command("update", example="legion up update\nlegion up update --yes")
@click.option("--yes", "sure", is_flag=True, help="Without asking.")
def update(call: CommandCall, sure: bool) -> None:
    """Bring this installation to the newest release, by the program that installed it.

    Then Legion starts again with it. Agents at work continue; your boards and settings are kept.
    """
    _here_only()
    made = installer()
    words = [shlex.join(one) for one in made.update]
    call.say(f"Legion {__version__}, installed by {sanitize(made.name)}. To update it: {' && '.join(words)}")
    if not _agreed(call, sure, "Run it now?"):
        return
    for argv in made.update:
        _run(argv)
    was_up = stop(call.data_dir)
    now = _ask(*_LEGION, "--version").removeprefix("legion ")
    if was_up:
        _run((*_LEGION, "--data-dir", str(call.data_dir), "up"), quiet=True)
    news = f"Legion is {now} now" if now != __version__ else f"Legion {now} is the newest"
    message = f"{news}{', and up again' if was_up else ''}."
    call.answer(Done(message=message), lambda: [message, *([] if now == __version__ else _changes(__version__))])


def _changes(before: str) -> Iterator[str]:
    """What the releases after that one say of themselves, where the update brought it along."""
    package = Path(__file__).resolve().parents[2]
    found = next((one for one in (package / _CHANGES, package.parents[1] / _CHANGES) if one.exists()), None)
    for line in found.read_text().splitlines() if found is not None else ():
        if line.startswith(f"## [{before}]"):
            return
        if line.startswith(("## ", "### ", "- ")):
            yield sanitize(line)


def _run(argv: tuple[str, ...], *, quiet: bool = False) -> None:
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
    except FileNotFoundError:
        raise LegionError(f"{argv[0]} is not on PATH: run `{shlex.join(argv)}` where it is.") from None
    if done.returncode != 0 and not quiet:
        raise LegionError(f"`{shlex.join(argv)}` failed with {done.returncode}; the daemon is as it was.")


def _ask(*argv: str, cwd: Path | None = None) -> str:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise LegionError(f"`{shlex.join(argv)}` failed: {sanitize(done.stderr.strip()[:_LONGEST])}")
    return done.stdout.strip()


@command(
    "uninstall", example="legion down uninstall\nlegion down uninstall --json\nlegion down uninstall --yes --unsaved"
)
@click.option("--yes", "sure", is_flag=True, help="Without asking, but where work would be lost.")
@click.option("--unsaved", is_flag=True, help="Also the work of tickets that did not land.")
def uninstall(call: CommandCall, sure: bool, unsaved: bool) -> None:
    """Remove everything that Legion put on this machine: first the list, then a question.

    Landed commits must be collected, and tickets and agents must have ended. Your repositories stay as they are,
    legion.toml included. With --json only the list.
    """
    _here_only()
    legion = call.legion()
    projects = legion.projects().projects
    with progress("Looking at what is there"):
        left = Leftovers.of(call, legion, projects)
    listed = list(left.lines())
    if call.json and not sure:
        call.answer(Done(message="Nothing is removed.", notes=listed), list)
        return
    for line in listed:
        call.say(line)
    if not _agreed(call, sure, "Remove all of this?"):
        return
    if left.unsaved and not unsaved and not _agreed(call, False, "Remove the work that did not land, too?"):
        raise NotAllowed("Nothing was removed. `legion checkout N` makes a branch of a ticket's work.")
    _forget(legion, left.trees)
    with progress("Removing"):
        left.remove(call)
    message = f"Removed. The program itself: {shlex.join(installer().remove)}"
    call.answer(Done(message=message, notes=left.stay()), lambda: [message])
    call.notes(left.stay())


def _forget(legion: Legion, trees: Mapping[str, ProjectLine]) -> None:
    """Each with its worktrees. While one of them refuses, what else Legion has on disk stays."""
    gone, refused = [], []
    for folder, project in sorted(trees.items(), key=lambda one: not one[1].session):
        try:
            legion.remove_project(project.root)
        except LegionError as no:
            refused.append(f"{project.name}: {no.message}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
            gone.append(project.name)
    if refused:
        already = [f"No longer projects: {', '.join(gone)}."] if gone else []
        raise StateConflict("\n".join(["Legion stays, because of:", *map(sanitize, (*refused, *already))]))


@dataclass(kw_only=True)
class Leftovers:
    """What is on this machine by Legion."""

    data: DataDir
    service: ServiceFile | None
    plugins: dict[str, tuple[str, Path]]
    """By its folder: whose it is, user or project, and the project."""
    trees: dict[str, ProjectLine]
    """By the folder of its agents' worktrees, next to each repository."""
    unsaved: list[str]
    """Work that would be lost, as sentences."""

    @staticmethod
    def of(call: CommandCall, legion: Legion, projects: list[ProjectLine]) -> Leftovers:
        found = [
            one for root in (*(one.root for one in projects), str(Path.home())) for one in _plugins(call, Path(root))
        ]
        made = daemon_service(call.data_dir, ServiceHost.here())
        unsaved = []
        for project in projects:
            counts = legion.status(project.root).counts
            if left := sum(counts.get(state, 0) for state in _NOT_LANDED):
                unsaved.append(f"{project.name}: the work of {count(left, 'ticket')} that did not land")
        kept = [legion.worktrees(one.root) for one in projects]
        for one in kept:
            _refuse_strangers(one)
        return Leftovers(
            data=DataDir(call.data_dir),
            service=made if made is not None and made.file.exists() else None,
            plugins={folder: (place, root) for folder, place, root in found},
            trees={one.root: project for one, project in zip(kept, projects, strict=True)},
            unsaved=unsaved,
        )

    def lines(self) -> Iterator[str]:
        yield "On this machine, by Legion:"
        if self.service is not None:
            yield f"  service    {self.service.file}"
        yield from (f"  plugin     {sanitize(folder)}" for folder in self.plugins)
        for name, path in self._paths():
            yield f"  {name:10} {sanitize(str(path))}  {_size(path)}"
        if self.unsaved:
            yield "Would be lost:"
            yield from (f"  {sanitize(one)}" for one in self.unsaved)
        yield "Your repositories stay as they are, legion.toml included."

    def _paths(self) -> Iterator[tuple[str, Path]]:
        for name, path in (("settings", user_config_file()), ("cache", user_cache_dir()), ("data", self.data.root)):
            if path.exists():
                yield name, path
        yield from (("worktrees", Path(folder)) for folder in self.trees if Path(folder).exists())

    def remove(self, call: CommandCall) -> None:
        if self.service is not None:
            for words in self.service.end:
                subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, check=False)
            self.service.file.unlink(missing_ok=True)
        for place, root in self.plugins.values():
            _ask(*_LEGION, "--data-dir", str(call.data_dir), "plugin", "remove", f"--{place}", cwd=root)
        stop(call.data_dir)
        user_config_file().unlink(missing_ok=True)
        shutil.rmtree(user_cache_dir(), ignore_errors=True)
        for entry in self.data.root.iterdir():
            if entry not in self._foreign():
                shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)
        for folder in (self.data.root, user_config_file().parent):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def _foreign(self) -> set[Path]:
        """legion_cc's database, where it was here before."""
        root = self.data.root
        return (
            {root / f"legion.db{end}" for end in ("", "-wal", "-shm")} if self.data.second_database.exists() else set()
        )

    def stay(self) -> list[str]:
        return [f"{path} is there still." for _, path in self._paths()]


def _plugins(call: CommandCall, root: Path) -> Iterator[tuple[str, str, Path]]:
    """Legion in Claude Code, as `legion plugin show` finds it from there."""
    here = root if root.is_dir() else Path.home()
    shown = json.loads(_ask(*_LEGION, "--data-dir", str(call.data_dir), "plugin", "show", "--json", cwd=here))
    yield from ((one["folder"], one["place"], here) for one in shown["places"] if one["installed"])


def _refuse_strangers(kept: WorktreeList) -> None:
    """What is not Legion's in a folder of worktrees would go with them."""
    there = Path(kept.root).iterdir() if Path(kept.root).is_dir() else ()
    # Every worktree is a repository of its own.
    strange = [path for path in there if not path.name.startswith(".") and not (path / ".git").exists()]
    if strange:
        raise StateConflict(f"Not Legion's, among its worktrees: {sanitize(str(strange[0]))}. Move it away first.")


def _size(path: Path) -> str:
    total = sum(entry.lstat().st_size for entry in (path.rglob("*") if path.is_dir() else (path,)))
    return size(total)


def _here_only() -> None:
    if is_remote():
        raise BadInput("LEGION_URL names a daemon that runs elsewhere; do this on its own machine.")


def _agreed(call: CommandCall, sure: bool, question: str) -> bool:
    if sure:
        return True
    if call.json or not sys.stdin.isatty():
        raise NotAllowed("Nothing is changed yet; run it again with --yes to do it.")
    return click.confirm(question, err=True)
