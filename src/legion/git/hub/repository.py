"""The hub: Legion's own bare repository per project. It holds the target, kept commits and candidates.

Objects are copied out of the person's repository and never linked: git touches the times of object files it meets
again, and a link would show that in the person's folder.
"""

from __future__ import annotations

import os
import re
import shutil
import time
import uuid
from pathlib import Path
from urllib.parse import quote

from legion.git.core.command import git
from legion.git.core.errors import BranchGone, GitError, RepositoryGone, TargetMoved
from legion.git.hub.filters import Filters, FilterSource, filters_of
from legion.git.hub.submodules import allow_missing, complete, promisor
from legion.git.hub.writable import WritableRepository
from legion.system import crash
from legion.system.crash import Point

TARGET = "refs/legion/target"
_OURS = "refs/legion/"
_RESERVED = ("target", "person", "branches", "submodules")
_NAME = re.compile(r"[A-Za-z0-9_%][A-Za-z0-9._%-]*(/[A-Za-z0-9_%][A-Za-z0-9._%-]*)*")
_PLAIN = re.compile(r"[A-Za-z0-9_%-]+(/[A-Za-z0-9_%-]+)*")
"""Without a dot there is no part of a name that git forbids."""
_TRIES = 3
_MOST_PACKS = 50
_MOST_LOOSE = 3000
_MOST_LOOSE_REFS = 500
_SAMPLED = 16


class Hub(WritableRepository):
    """Every method may be repeated after a crash and called from several threads.

    Without a `source` of filters, trees hold files as they are stored.
    """

    def __init__(self, path: Path, source: FilterSource | None = None) -> None:
        super().__init__(path)
        self.source = source

    @classmethod
    def create(
        cls, repo_common_dir: Path, hub_path: Path, source: FilterSource | None = None, *, tip: str | None = None
    ) -> Hub:
        """Make the hub out of the person's repository, or adopt the one that is there.

        `tip` is the commit that work will start from. Raises UnusableRepository where objects of it are missing.
        """
        hub = cls(hub_path, source)
        if not hub.path.exists():
            if tip is not None:
                complete(repo_common_dir, tip)
            hub.path.parent.mkdir(parents=True, exist_ok=True)
            half = _clone(repo_common_dir, hub.path)
            crash.reach(Point.GIT_HUB_BEFORE_PUBLISH)
            try:
                half.rename(hub.path)
            except OSError:
                # Another thread was first; its hub is as good as ours.
                shutil.rmtree(half)
                if not hub.path.is_dir():
                    raise
            crash.reach(Point.GIT_HUB_AFTER_PUBLISH)
        return hub

    def fetch_person(self, repo_common_dir: Path, branch: str) -> str:
        """Bring the tip of the person's branch here, also while they commit, rebase and gc. Returns the commit."""
        theirs, ours = f"refs/heads/{branch}", f"{_OURS}person/{quote(branch, safe='')}"
        if not repo_common_dir.is_dir():
            raise RepositoryGone(repo_common_dir)
        for attempt in range(_TRIES):
            tip = git(
                "rev-parse", "--verify", "--quiet", "--end-of-options", f"{theirs}^{{commit}}",
                git_dir=repo_common_dir, accept=(0, 1, 128),
            )  # fmt: skip
            if tip.code != 0:
                raise BranchGone(branch)
            known = self.resolve(ours)
            if known == tip.text.split()[-1]:
                return known
            if promisor(repo_common_dir) is not None:
                complete(repo_common_dir, tip.text.split()[-1], known)
            try:
                # Tags travel along for `git describe`; pruning lets a tag `a/b` follow a deleted tag `a`.
                self._writing(
                    "fetch", "--quiet", "--force", "--prune", "--no-tags", "--no-write-fetch-head",
                    "--no-show-forced-updates", "--update-shallow", "--end-of-options", repo_common_dir,
                    f"+{theirs}:{ours}", "+refs/tags/*:refs/tags/*",
                )  # fmt: skip
            except GitError:
                if attempt + 1 == _TRIES:
                    raise
                continue
            crash.reach(Point.GIT_PERSON_AFTER_FETCH)
        fetched = self.resolve(ours)
        if fetched is None:
            raise BranchGone(branch)
        return fetched

    def fetch_branch(self, repo_common_dir: Path, name: str) -> str:
        """Bring the tip of any branch of the person's repository here, or of a remote as they fetched it last."""
        if not repo_common_dir.is_dir():
            raise RepositoryGone(repo_common_dir)
        places = (f"refs/heads/{name}", f"refs/remotes/{name}", f"refs/remotes/origin/{name}")
        listed = git("for-each-ref", "--format=%(objectname) %(refname)", *places, git_dir=repo_common_dir).text
        tips = {ref: commit for commit, ref in (line.split(" ", 1) for line in listed.splitlines())}
        theirs = next((place for place in places if place in tips), None)
        if theirs is None:
            raise BranchGone(name)
        ours = f"{_OURS}branches/{quote(theirs.removeprefix('refs/'), safe='')}"
        self._writing(
            "fetch", "--quiet", "--force", "--no-tags", "--no-write-fetch-head", "--no-show-forced-updates",
            "--end-of-options", repo_common_dir, f"+{theirs}:{ours}",
        )  # fmt: skip
        return self.resolve(ours) or tips[theirs]

    def filters(self, *commits: str) -> Filters | None:
        """The git filters in force in commits or trees, the first of which counts most; None where there are none."""
        return filters_of(self, self.source, *commits)

    def target(self) -> str | None:
        return self.resolve(TARGET)

    def start_target(self, commit: str) -> str:
        """Set the target if there is none yet. Returns the target as it is now."""
        try:
            self._writing("update-ref", TARGET, commit, "0" * len(commit))
        except GitError:
            known = self.target()
            if known is None:
                raise
            return known
        return commit

    def move_target(self, new: str, *, expected: str) -> None:
        """Move the target from `expected` to `new` and from nowhere else. Being there already is success."""
        crash.reach(Point.GIT_TARGET_BEFORE_SWAP)
        try:
            self._writing("update-ref", TARGET, new, expected)
        except GitError:
            found = self.target()
            if found == new:
                return
            if found == expected:
                raise
            raise TargetMoved(expected=expected, found=found) from None
        crash.reach(Point.GIT_TARGET_AFTER_SWAP)

    def keep(self, name: str, commit: str) -> None:
        """Hold a commit under refs/legion/<name>, so that nothing ever forgets it. Moves an older one."""
        short = name.removeprefix(_OURS)
        if not _NAME.fullmatch(short) or ".." in short or short.endswith(".lock"):
            raise ValueError(f"{name!r} is no name to keep a commit under; use letters, digits, '-', '.' and '/'.")
        if short.split("/")[0] in _RESERVED:
            raise ValueError(f"{name!r} belongs to the hub itself; keep the commit under another name.")
        id = self._identify(commit) if _PLAIN.fullmatch(short) else None
        if id is None or not write_ref(self.path, _OURS + short, id):
            self._writing("update-ref", _OURS + short, commit)
        crash.reach(Point.GIT_KEEP_AFTER)

    def kept(self, prefix: str = "") -> dict[str, str]:
        """Names (below refs/legion/) and commits of everything kept under a folder or as a name."""
        place = (_OURS + prefix.removeprefix(_OURS)).rstrip("/")
        lines = self._git("for-each-ref", "--format=%(objectname) %(refname)", place).text.splitlines()
        return {name.removeprefix(_OURS): commit for commit, name in (line.split(" ", 1) for line in lines)}

    def tidy(self) -> None:
        """Pack objects and refs. Nothing is ever pruned: private repositories borrow from here."""
        # Where objects are missing on purpose, git cannot join packs: loose objects are packed alone.
        joined = ("--geometric=2",) if promisor(self.path) is None else ()
        self._writing("repack", *joined, "-d", "-q", "--no-write-bitmap-index")
        self._writing("pack-refs", "--all")
        self._sweep()

    def tidy_if_crowded(self) -> bool:
        """Pack where so many packs, loose objects or loose refs have gathered that each git process pays for them."""
        if not self._is_crowded():
            self._sweep()
            return False
        self.tidy()
        return True

    def _is_crowded(self) -> bool:
        packs = sum(1 for entry in _entries(self.objects / "pack") if entry.name.endswith(".pack"))
        # Ids are spread evenly, so some of the 256 folders stand for all.
        sample = sum(1 for number in range(_SAMPLED) for _ in _entries(self.objects / f"{number * 15:02x}"))
        if packs > _MOST_PACKS or sample * 256 // _SAMPLED > _MOST_LOOSE:
            return True
        loose = (1 for folder, _, names in os.walk(self.path / "refs") for _ in names)
        return any(count > _MOST_LOOSE_REFS for count, _ in enumerate(loose, start=1))

    def _sweep(self) -> None:
        # What killed processes left: ours, and a git that was to write many objects.
        for half in (*(self.path / "incoming").glob("*"), *self.objects.glob("tmp_objdir-*")):
            if time.time() - half.stat().st_mtime > 24 * 3600:
                shutil.rmtree(half, ignore_errors=True)


def _clone(repo_common_dir: Path, hub_path: Path) -> Path:
    """A bare copy under a temporary name: no remote, no template, no branches of the person."""
    half = hub_path.with_name(f".{hub_path.name}.{uuid.uuid4().hex}")
    for attempt in range(_TRIES):
        # Copying files is fastest, but the person's gc may remove what is just being copied. Asking their git is safe.
        last = attempt + 1 == _TRIES
        how = ("--no-local",) if last else ("--local", "--no-hardlinks", "--dissociate")
        before = _packs(repo_common_dir)
        try:
            git(
                "clone", "--quiet", "--bare", *how, "--template=",
                "--end-of-options", repo_common_dir, half, git_dir=None, cwd=hub_path.parent,
            )  # fmt: skip
        except GitError:
            shutil.rmtree(half, ignore_errors=True)
            if last:
                raise
            continue
        # A repack in the middle could hide objects from a copy that git itself does not verify.
        if last or before == _packs(repo_common_dir):
            break
        shutil.rmtree(half)
    git("config", "--remove-section", "remote.origin", git_dir=half)
    if promisor(repo_common_dir) is not None:
        allow_missing(half)
    branches = git("for-each-ref", "--format=delete %(refname)", "refs/heads/", git_dir=half).stdout
    git("update-ref", "--stdin", git_dir=half, stdin=branches)
    return half


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def _packs(common_dir: Path) -> frozenset[str]:
    return frozenset(pack.name for pack in (common_dir / "objects/pack").glob("*.pack"))


def write_ref(git_dir: Path, ref: str, id: str) -> bool:
    """Let a ref name an object that exists, by the file that git would write, under its lock. A process takes some
    milliseconds for it. False where git has to do it, and nothing was changed.

    That is so where refs are stored in another way, where a process holds the lock or left it behind, and where a name
    of another ref is a folder of this one.
    """
    place = git_dir / ref
    if (git_dir / "reftable").exists() or _collides(git_dir / "packed-refs", ref.encode()):
        return False
    lock = place.with_name(f"{place.name}.lock")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except OSError:
        return False
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(b"%s\n" % id.encode())
            file.flush()
            os.fsync(file.fileno())
        lock.rename(place)
    except BaseException as error:
        lock.unlink()
        if isinstance(error, OSError):
            return False
        raise
    return True


def _collides(packed: Path, ref: bytes) -> bool:
    """Whether a packed ref is a folder of this one, or the other way round. Loose ones show when the file is made."""
    try:
        known = packed.read_bytes()
    except FileNotFoundError:
        return False
    parts = ref.split(b"/")
    above = (b" %s\n" % b"/".join(parts[:depth]) for depth in range(1, len(parts)))
    return b" %s/" % ref in known or any(one in known for one in above)
