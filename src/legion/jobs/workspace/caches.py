"""The downloads of package managers: one cache per project, which all its trees read.

A program gets a copy of the cache, which is removed after it. Only a command of the trusted legion.toml that succeeded
on a landed commit replaces the cache, and only the listed folders: settings, scripts and programs next to them are not
kept. So a change that has not landed and a ticket's own proof leave nothing in it, no program meets a file that
another one is writing, and no project reads what another one downloaded.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from legion.config.files.user import UserConfig
from legion.jobs.trees import ProjectContext
from legion.system import files, trees

_INSTALLERS = {
    # Variables that tell programs which only install where their downloads are; {} is the cache.
    "XDG_CACHE_HOME": "{}",
    "PIP_CACHE_DIR": "{}/pip",
    "UV_CACHE_DIR": "{}/uv",
    "POETRY_CACHE_DIR": "{}/poetry",
    "npm_config_cache": "{}/npm",
    "npm_config_store_dir": "{}/pnpm",
    "YARN_CACHE_FOLDER": "{}/yarn",
    "YARN_GLOBAL_FOLDER": "{}/yarn",
    "BUN_INSTALL_CACHE_DIR": "{}/bun",
    "BUNDLE_USER_CACHE": "{}/bundle",
    "COMPOSER_CACHE_DIR": "{}/composer",
}
_BUILDERS = {
    # The same for programs that build and test with what they downloaded.
    "CARGO_HOME": "{}/cargo",
    "GOMODCACHE": "{}/go",
    "GRADLE_USER_HOME": "{}/gradle",
    "MAVEN_OPTS": "-Dmaven.repo.local={}/maven",
    "MAVEN_USER_HOME": "{}/mavenw",
    "NUGET_PACKAGES": "{}/nuget",
    "DENO_DIR": "{}/deno",
}
_INSTALLERS_KEEP = (
    *("pip", "uv", "poetry/artifacts", "poetry/cache", "npm/_cacache", "pnpm", "yarn", "bun", "bundle", "composer"),
)
_BUILDERS_KEEP = (
    *("cargo/registry/cache", "cargo/registry/index", "cargo/git/db", "go/cache", "gradle/caches/modules-2", "maven"),
    *("nuget", "deno/npm", "deno/remote", "deno/deps"),
)
_MOST_BYTES = 4 << 30
"""A cache that outgrows this starts again from nothing."""


def variables(user: UserConfig, cache: Path, *, installs: bool) -> dict[str, str]:
    """What names the cache to programs. A variable that the person sets for agents is theirs."""
    theirs = {*user.sandbox.env, *(one.variable for one in user.environment.caches)}
    wanted = {**_BUILDERS, **(_INSTALLERS if installs else {})}
    return {name: value.format(cache) for name, value in wanted.items() if name not in theirs}


def is_empty(project: ProjectContext, *, installs: bool) -> bool:
    return not _parts(project.cache, installs=installs)


def copy_to(project: ProjectContext, place: Path, *, installs: bool) -> None:
    """Copy the cache, or only what builds read of it, into a new folder."""
    place.mkdir()
    with _alone(project):
        for part in _parts(project.cache, installs=installs):
            folder = (place / part).parent
            folder.mkdir(parents=True, exist_ok=True)
            trees.copy([project.cache / part], folder)


@contextmanager
def copied(project: ProjectContext, *, installs: bool) -> Iterator[Path]:
    """A copy of the cache for one program."""
    with project.check_trees.scratch() as scratch:
        copy_to(project, scratch / "cache", installs=installs)
        yield scratch / "cache"


def publish(project: ProjectContext, copy: Path) -> None:
    """Make the downloads in the copy those of the cache. Folders that the copy lacks stay."""
    # Folders of a sandbox are mounts of their own, so no file of the tree is a hard link to one of the cache.
    parts = _parts(copy, installs=True)
    fits = sum(trees.size(copy / part) for part in parts) <= _MOST_BYTES
    with project.check_trees.scratch() as old, _alone(project):
        for number, part in enumerate(parts):
            before = project.cache / part
            before.parent.mkdir(parents=True, exist_ok=True)
            if before.exists():
                before.rename(old / str(number))
            if fits:
                (copy / part).rename(before)


def _parts(cache: Path, *, installs: bool) -> list[str]:
    """The folders of downloads that are there. What is behind a link may be anything, so it is none of them."""
    wanted = (*_BUILDERS_KEEP, *(_INSTALLERS_KEEP if installs else ()))
    found = ((part, trees.facts(cache, part)) for part in wanted)
    return [part for part, facts in found if facts is not None and stat.S_ISDIR(facts.st_mode)]


@contextmanager
def _alone(project: ProjectContext) -> Iterator[None]:
    project.cache.mkdir(parents=True, exist_ok=True)
    with files.waiting_lock(project.folder / "cache.lock"):
        yield
