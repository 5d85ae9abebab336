"""The parts of /etc that programs in a sandbox may read, and a copy of them that costs one mount instead of forty.

An allow-list: what is not named here (keys, passwords, settings of services) is neither mounted nor copied.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

_ETC = Path("/etc")
_ALLOWED = (
    # users, names, places
    *("passwd", "group", "nsswitch.conf", "hosts", "host.conf", "gai.conf", "resolv.conf"),
    *("protocols", "services", "localtime", "timezone", "locale.conf", "default/locale"),
    *("os-release", "debian_version", "lsb-release", "redhat-release", "alpine-release", "static"),
    # the loader, and links that packages choose between
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives"),
    # certificates, without the private keys that are stored next to them
    *("ca-certificates", "ca-certificates.conf", "ssl/certs", "ssl/cert.pem", "ssl/openssl.cnf", "crypto-policies"),
    *("pki/ca-trust", "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf"),
    # settings of the machine for everyone's tools
    *("gitconfig", "npmrc", "pip.conf", "mime.types", "fonts", "maven"),
    *("perl", "python3", "java-*", "R"),
    # PHP loads its extensions by them; next to them are settings of web servers
    *("php/*/cli", "php/*/mods-available", "php.ini", "php.d"),
)
_SYNCING = threading.Lock()
_LOOK_EVERY = 10.0
_SYNC_EVERY = 600.0


def binds() -> Iterator[str]:
    """Options of bubblewrap that mount each allowed entry by itself."""
    for path in _allowed():
        link = _link_into_usr(path)
        yield from ("--ro-bind-try", str(path), str(path)) if link is None else ("--symlink", link, str(path))


def sync(folder: Path) -> Path:
    """Make `folder` a copy of the allowed entries and return it. Only what changed since the last time is copied.

    A changed file is replaced by a rename, so sandboxes that have the folder mounted see the old or the new one.
    Cheap to call for every sandbox: /etc is looked at every few seconds, and read through only where it changed.
    """
    with _SYNCING:
        last = _LAST.get(folder)
        now = time.monotonic()
        if last is not None and now - last.looked_at < _LOOK_EVERY:
            return folder
        seen = _signature()
        if last is None or last.seen != seen or now - last.synced_at > _SYNC_EVERY:
            _sync(folder)
            last = _Sync(seen=seen, looked_at=now, synced_at=now)
        _LAST[folder] = replace(last, looked_at=now)
    return folder


@dataclass(frozen=True, kw_only=True)
class _Sync:
    """When a folder was compared and copied, and how the allowed entries looked then."""

    seen: tuple[tuple[int, ...], ...]
    looked_at: float
    synced_at: float


_LAST: dict[Path, _Sync] = {}


def _signature() -> tuple[tuple[int, ...], ...]:
    """Changes where an allowed entry, or what is directly in an allowed folder, is replaced, added or removed."""
    facts = []
    for path in _allowed():
        with contextlib.suppress(OSError):
            found = path.stat()
            facts.append((found.st_ino, found.st_mtime_ns, found.st_size))
    return tuple(facts)


def _sync(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    wanted: dict[Path, set[str]] = {folder: set()}
    for path in _allowed():
        target = folder / path.relative_to(_ETC)
        for parent in reversed(target.relative_to(folder).parents[:-1]):
            _make_folder(folder / parent)
            wanted.setdefault(folder / parent, set())
            wanted[(folder / parent).parent].add(parent.name)
        wanted[target.parent].add(target.name)
        link = _link_into_usr(path)
        with contextlib.suppress(FileNotFoundError, PermissionError):
            if link is not None:
                _copy_link(link, target)
            else:
                _copy(path.resolve(), target)
    for parent, names in wanted.items():
        for extra in _names(parent) - names:
            _remove(parent / extra)


def _allowed() -> Iterator[Path]:
    for pattern in _ALLOWED:
        if "*" in pattern:
            yield from sorted(_ETC.glob(pattern))
        elif os.path.lexists(_ETC / pattern):
            yield _ETC / pattern


def _link_into_usr(path: Path) -> str | None:
    """The text of a link that leads into /usr, which is visible inside."""
    if path.is_symlink() and path.resolve().is_relative_to("/usr"):
        return str(path.readlink())
    return None


def _copy(source: Path, target: Path) -> None:
    """A file or a folder with everything in it. Sockets, pipes and devices are left out."""
    facts = source.lstat()
    if stat.S_ISLNK(facts.st_mode):
        _copy_link(str(source.readlink()), target)
    elif stat.S_ISREG(facts.st_mode):
        _copy_file(source, facts, target)
    elif stat.S_ISDIR(facts.st_mode):
        _make_folder(target)
        names = set()
        with os.scandir(source) as entries:
            for entry in entries:
                names.add(entry.name)
                with contextlib.suppress(FileNotFoundError, PermissionError):
                    link = _link_of(entry.path) if entry.is_symlink() else None
                    if link is None or not _has_link(link, f"{target}/{entry.name}"):
                        _copy(source / entry.name, target / entry.name)
        for extra in _names(target) - names:
            _remove(target / extra)


def _copy_file(source: Path, facts: os.stat_result, target: Path) -> None:
    try:
        there = target.lstat()
    except FileNotFoundError:
        there = None
    if (
        there is not None
        and stat.S_ISREG(there.st_mode)
        and (there.st_mtime_ns, there.st_size, there.st_mode) == (facts.st_mtime_ns, facts.st_size, facts.st_mode)
    ):
        return
    half = target.with_name(f".{target.name}.half")
    shutil.copy2(source, half)
    if os.geteuid() == 0:
        # Files that only their owner may read stay that way.
        os.chown(half, facts.st_uid, facts.st_gid)
        half.chmod(stat.S_IMODE(facts.st_mode))
    _replace(half, target)


def _copy_link(link: str, target: Path) -> None:
    if _has_link(link, str(target)):
        return
    half = target.with_name(f".{target.name}.half")
    half.unlink(missing_ok=True)
    half.symlink_to(link)
    _replace(half, target)


def _has_link(link: str, target: str) -> bool:
    """Make it where nothing is yet. False where something else is."""
    try:
        os.symlink(link, target)  # noqa: PTH211
    except FileExistsError:
        return _link_of(target) == link
    return True


def _link_of(path: str) -> str | None:
    """The text of a link. Most of what is copied are links, hundreds of them, and a Path takes longer than the call."""
    try:
        return os.readlink(path)  # noqa: PTH115
    except OSError:
        return None


def _replace(half: Path, target: Path) -> None:
    if target.is_dir() and not target.is_symlink():
        _remove(target)
    half.replace(target)


def _make_folder(target: Path) -> None:
    if not target.is_dir() or target.is_symlink():
        target.unlink(missing_ok=True)
        target.mkdir(mode=0o755)


def _names(folder: Path) -> set[str]:
    with os.scandir(folder) as entries:
        return {entry.name for entry in entries}


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
