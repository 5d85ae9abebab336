"""Finds the folders that the person's tools need inside a sandbox: the installations behind PATH, and nothing else.

Half of all toolchains are under HOME (pyenv, nvm, cargo, uv ...), next to keys and letters. So each folder of PATH is
followed to its installation, links are followed to theirs, and only those parts are listed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_SYSTEM = tuple(Path(path) for path in ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix/store"))

_MANAGERS: dict[str, tuple[str, ...]] = {
    # A version manager's home, and what of it programs need.
    **{
        name: (name,)
        for name in (
            *(".pyenv", ".nvm", ".rustup", ".asdf", ".volta", ".bun", ".deno", ".sdkman", ".rbenv", ".rvm", ".nodenv"),
            *(".goenv", ".gvm", ".jenv", ".jabba", ".phpenv", ".fnm", ".ghcup", ".opam", ".dotnet", ".swiftly"),
            *(".foundry", ".elan", ".proto", ".rye", ".pixi", ".linuxbrew"),
            *(".local/share/mise", ".local/share/rtx", ".local/share/fnm", ".local/share/pnpm", ".local/share/nvm"),
            ".config/nvm",
        )
    },
    # Credentials are stored next to these.
    ".cargo": (".cargo/bin", ".cargo/env", ".rustup"),
    ".local/share/uv": (".local/share/uv/python", ".local/share/uv/tools"),
    ".juliaup": (".juliaup", ".julia/juliaup"),
}
_VARIABLES = {
    # The variable that names a version manager's home where HOME is another.
    "PYENV_ROOT": ".pyenv",
    "RBENV_ROOT": ".rbenv",
    "NODENV_ROOT": ".nodenv",
    "GOENV_ROOT": ".goenv",
    "RUSTUP_HOME": ".rustup",
    "CARGO_HOME": ".cargo",
    "NVM_DIR": ".nvm",
    "VOLTA_HOME": ".volta",
    "ASDF_DATA_DIR": ".asdf",
    "SDKMAN_DIR": ".sdkman",
    "MISE_DATA_DIR": ".local/share/mise",
    "ELAN_HOME": ".elan",
}
_PREFIX_PARTS = ("bin", "sbin", "lib", "lib64", "libexec", "include", "share", "pyvenv.cfg")
_NEVER = (".ssh", ".claude", ".gnupg", ".aws", ".docker", ".kube", ".password-store", ".mozilla")
_NEVER_WHOLE = ("", ".local", ".local/share", ".local/state", ".cargo", ".config", ".cache")
_NEVER_WHOLE_OUTSIDE = tuple(Path(path) for path in ("/etc", "/var", "/tmp", "/run", "/home", "/proc", "/dev", "/sys"))


class ShowsTooMuch(Exception):
    """A folder in the settings would show agents what they must not see."""


def toolchains(
    path_env: str, home: Path, *, named: Sequence[Path] = (), hidden: Sequence[Path] = ()
) -> tuple[Path, ...]:
    """The folders to make readable: for a PATH, plus those the person names.

    A folder that is, contains or is inside a `hidden` folder (Legion's own data) or a folder of secrets is never among
    them; ShowsTooMuch if the person names such a one.
    """
    search = _Search(home.absolute(), tuple(path.resolve() for path in hidden))
    for path in named:
        search.add_named(path.expanduser())
    for entry in path_env.split(os.pathsep):
        if Path(entry).is_absolute():
            search.add_bin(Path(entry))
    return search.outermost()


def variables(home: Path) -> dict[str, str]:
    """The variables that the version managers under this HOME need where a program has another one."""
    return {name: str(home / folder) for name, folder in _VARIABLES.items() if (home / folder).is_dir()}


class _Search:
    def __init__(self, home: Path, hidden: tuple[Path, ...]) -> None:
        self._home_as_named = home
        self._home = home = home.resolve()
        self._secret = (*hidden, *(home / name for name in _NEVER))
        self._whole = (*(home / name for name in _NEVER_WHOLE), *_NEVER_WHOLE_OUTSIDE)
        self._found: set[Path] = set()
        self._seen_bins: set[Path] = set()

    def outermost(self) -> tuple[Path, ...]:
        """Sorted, without folders that are inside another of them."""
        kept = [path for path in self._found if not any(parent in self._found for parent in path.parents)]
        return tuple(sorted(kept))

    def add_named(self, path: Path) -> None:
        """A folder that the person names is listed, unless it would give everything away."""
        if os.access(path, os.R_OK) and not self._add(path):
            raise ShowsTooMuch(f"{path} holds more than agents may see; name a narrower folder.")

    def add_bin(self, path: Path) -> None:
        """A folder of PATH: its installation, and those that the links in it lead to."""
        real = path.resolve()
        if real in self._seen_bins or not os.access(real, os.R_OK | os.X_OK) or not real.is_dir():
            return
        self._seen_bins.add(real)
        if not any(real.is_relative_to(place) for place in _SYSTEM):
            if self._shows_too_much(real):
                return
            self._add_installation(real)
            if path != real:
                self._add(path)
        if not real.is_relative_to("/usr/bin") and not real.is_relative_to("/usr/sbin"):
            self._follow_links(real)

    def _follow_links(self, folder: Path) -> None:
        with os.scandir(folder) as entries:
            links = [Path(entry.path) for entry in entries if entry.is_symlink()]
        for link in links:
            try:
                target = link.resolve(strict=True)
            except (OSError, RuntimeError):
                continue
            if not target.is_relative_to(folder) and not self._is_found(target):
                self._add_target(target)

    def _add_target(self, target: Path) -> None:
        """The target of an executable link: its installation if it looks like one, else as little as works."""
        if target.is_dir() or any(target.is_relative_to(place) for place in _SYSTEM):
            return
        if self._manager(target) is not None:
            self._add_installation(target.parent)
        elif "node_modules" in target.parts:
            parts = target.parts[: target.parts.index("node_modules") + 1]
            self._add(Path(*parts))
        elif target.parent.name in ("bin", "sbin"):
            self.add_bin(target.parent)
        elif self._in_repository(target) or not self._add(target.parent):
            self._add(target)

    def _add_installation(self, folder: Path) -> None:
        parts = self._manager(folder)
        if parts is not None:
            for part in parts:
                self._add(self._home / part)
            return
        prefix = folder.parent
        if folder.name not in ("bin", "sbin", "condabin") or prefix in self._whole:
            self._add(folder)
            if prefix == self._home / ".local":
                self._add(prefix / "lib")
        elif (prefix / "conda-meta").is_dir() or ((prefix / "bin/go").is_file() and (prefix / "pkg/tool").is_dir()):
            self._add(prefix)
        else:
            for part in _PREFIX_PARTS:
                self._add(prefix / part)

    def _manager(self, path: Path) -> tuple[str, ...] | None:
        for name, parts in _MANAGERS.items():
            if path.is_relative_to(self._home / name):
                return parts
        return None

    def _in_repository(self, target: Path) -> bool:
        """A link into a working tree means that one file, not the person's other project."""
        return any(os.access(folder / ".git", os.F_OK) for folder in target.parents)

    def _is_found(self, path: Path) -> bool:
        return any(path.is_relative_to(found) for found in self._found)

    def _add(self, path: Path) -> bool:
        """List the path unless it would show too much; returns whether it is listed."""
        real = path.resolve()
        if self._shows_too_much(real) or not os.access(real, os.R_OK):
            return False
        self._found |= {path.absolute(), real}
        if real.is_relative_to(self._home):
            self._found.add(self._home_as_named / real.relative_to(self._home))
        return True

    def _shows_too_much(self, real: Path) -> bool:
        whole = real in self._whole or self._home.is_relative_to(real)
        return whole or any(real.is_relative_to(place) or place.is_relative_to(real) for place in self._secret)
