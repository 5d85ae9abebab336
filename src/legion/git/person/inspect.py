"""Reads facts of the person's repository: read-only, runs nothing that their repository names."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from legion.git.core.command import as_text, fields, git
from legion.git.core.errors import GitError, NotARepository, UnusableRepository
from legion.system.process import FinishedProcess


@dataclass(frozen=True, kw_only=True)
class RepositoryFacts:
    """The result of `look`. `root` is the top of the checkout that holds the path, for a bare one the repository."""

    root: Path
    git_dir: Path
    common_dir: Path
    branch: str | None
    head: str | None
    is_bare: bool
    is_shallow: bool
    is_partial: bool
    dirty_files: int


def look(path: Path) -> RepositoryFacts:
    """The facts of the repository that contains `path`, or NotARepository."""
    if not path.is_dir():
        raise NotARepository(f"{path} is not a folder; name the folder of a git repository.")
    git_dir, common_dir, is_bare, is_shallow = find(path)
    root = git_dir if is_bare else _root(path)

    def ask(*args: str, accept: tuple[int, ...] = (0, 1)) -> FinishedProcess:
        return git(*args, git_dir=git_dir, work_tree=None if is_bare else root, accept=accept)

    head = ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}").text.strip() or None
    return RepositoryFacts(
        root=root,
        git_dir=git_dir,
        common_dir=common_dir,
        branch=as_text(ask("symbolic-ref", "--quiet", "HEAD").stdout).strip().removeprefix("refs/heads/") or None,
        head=head,
        is_bare=is_bare,
        is_shallow=is_shallow,
        is_partial=ask("config", "--get-regexp", r"^(extensions\.partialclone|remote\..*\.promisor)$").code == 0,
        dirty_files=0 if is_bare or head is None else _dirty(git_dir, root),
    )


def find(path: Path) -> tuple[Path, Path, bool, bool]:
    """The git folder, the folder it shares with other checkouts, whether bare, whether shallow."""
    try:
        answer = git(
            "rev-parse",
            "--path-format=absolute",
            "--git-dir",
            "--git-common-dir",
            "--is-bare-repository",
            "--is-shallow-repository",
            git_dir=None,
            cwd=path,
        )
    except GitError as error:
        if "not a git repository" in error.complaint:
            raise NotARepository(f"{path} is not in a git repository; run `git init` there first.") from None
        raise NotARepository(f"{path} cannot be read as a git repository: {error.complaint}") from error
    *places, bare, shallow = answer.stdout.rstrip(b"\n").split(b"\n")
    git_dir, common_dir = (Path(place.decode("utf-8", "surrogateescape")) for place in places)
    return git_dir, common_dir, bare == b"true", shallow == b"true"


def refuse_foreign(common_dir: Path) -> None:
    """Raises UnusableRepository where git does not copy a repository, since its files are another user's."""
    if common_dir.stat().st_uid == os.geteuid():
        return
    try:
        git("ls-remote", "--quiet", "--end-of-options", common_dir, "HEAD", git_dir=None)
    except GitError as refused:
        if "dubious ownership" in refused.complaint:
            raise UnusableRepository(
                f"{common_dir} belongs to another user, so git does not copy it: run Legion as that user, or make it "
                f"yours with `chown -R`."
            ) from None
        raise


def _root(path: Path) -> Path:
    answer = git("rev-parse", "--show-toplevel", git_dir=None, cwd=path, accept=(0, 128))
    if answer.code != 0:
        raise NotARepository(f"{path} is inside a .git folder; go to the checkout it belongs to.")
    return Path(answer.stdout.rstrip(b"\n").decode("utf-8", "surrogateescape"))


def _dirty(git_dir: Path, root: Path) -> int:
    """How many files differ from HEAD or are new. Filters are switched off, since they are programs; a file that one of
    them stores counts only if it is new or gone.
    """
    named = git("config", "-z", "--name-only", "--get-regexp", r"^filter\.", git_dir=git_dir, accept=(0, 1))
    off: dict[str, str] = {}
    for key in fields(named.stdout):
        driver = key.decode("utf-8", "surrogateescape").rpartition(".")[0]
        off |= {f"{driver}.clean": "", f"{driver}.process": "", f"{driver}.required": "false"}
    answer = git(
        "status",
        "--porcelain",
        "-z",
        "--no-renames",
        "--ignore-submodules=dirty",
        git_dir=git_dir,
        work_tree=root,
        settings=off,
    )
    found = fields(answer.stdout)
    if not off:
        return len(found)
    changed = b"".join(one[3:] + b"\0" for one in found if one[1:2] == b"M")
    words = ("check-attr", "-z", "--stdin", "filter")
    stored = fields(git(*words, git_dir=git_dir, work_tree=root, stdin=changed).stdout)[2::3]
    return len(found) - sum(1 for value in stored if value not in (b"unspecified", b"unset", b"set"))


def file_names(root: Path, most: int = 50_000) -> tuple[str, ...]:
    """Tracked and new files of a checkout, without ignored ones; of more than `most` those nearest to the top."""
    git_dir, _, _, _ = find(root)
    listed = git(
        "ls-files", "-z", "--cached", "--others", "--exclude-standard", git_dir=git_dir, work_tree=root, cwd=root
    )
    names = fields(listed.stdout)
    kept = sorted(names, key=lambda name: name.count(b"/"))[:most] if len(names) > most else names
    return tuple(name.decode("utf-8", "surrogateescape") for name in kept)


WORKTREE_INCLUDE = ".worktreeinclude"
_MOST_INCLUDED = 200


def included_files(root: Path) -> tuple[str, ...]:
    """New files of a checkout that its `.worktreeinclude` names, in the manner of .gitignore; the first 200."""
    if not (root / WORKTREE_INCLUDE).is_file():
        return ()
    git_dir, _, _, _ = find(root)
    listed = git(
        "ls-files", "-z", "--others", "--ignored", f"--exclude-from={root / WORKTREE_INCLUDE}",
        git_dir=git_dir, work_tree=root, cwd=root,
    )  # fmt: skip
    return tuple(name.decode("utf-8", "surrogateescape") for name in fields(listed.stdout)[:_MOST_INCLUDED])


def branches(common_dir: Path) -> tuple[str, ...]:
    """The names of all branches, the one with the newest commit first."""
    listed = git(
        "for-each-ref", "--sort=-committerdate", "--format=%(refname:lstrip=2)", "refs/heads/", git_dir=common_dir
    )
    return tuple(listed.text.splitlines())


_MOST_TAGS = 10_000


def tags(common_dir: Path) -> tuple[str, ...]:
    """The tags of a repository by name, without `refs/tags/`. Raises GitError where the repository cannot be read."""
    found = git("for-each-ref", "--format=%(refname:strip=2)", "refs/tags", git_dir=common_dir)
    return tuple(sorted(found.stdout.decode("utf-8", "replace").splitlines()))[:_MOST_TAGS]


def has_branch(common_dir: Path, branch: str) -> bool:
    """Whether the branch exists. Mostly one look at a file; git is asked where the files do not tell."""
    if loose_tip(common_dir, branch) is not None:
        return True
    try:
        if f" refs/heads/{branch}\n" in (common_dir / "packed-refs").read_text(errors="replace"):
            return True
    except OSError:
        pass
    return branch in branches(common_dir) if common_dir.is_dir() else False


def dropped(common_dir: Path, branch: str, commit: str) -> bool:
    """Whether the branch was rewritten since it was at this commit. Git is asked only if the branch has moved."""
    tip = loose_tip(common_dir, branch)
    if tip is None or tip == commit:
        return False
    # A commit that the repository does not have any more is in no branch of it.
    asked = git("merge-base", "--is-ancestor", "--end-of-options", commit, tip, git_dir=common_dir, accept=(0, 1, 128))
    return asked.code != 0


def checked_out(folder: Path) -> str | None:
    """The branch that a checkout has, read from its files; None where HEAD is detached or cannot be read."""
    try:
        place = folder / ".git"
        if place.is_file():
            place = (folder / place.read_text().removeprefix("gitdir:").strip()).resolve()
        head = (place / "HEAD").read_text().strip()
    except OSError:
        return None
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else None


def loose_tip(common_dir: Path, branch: str) -> str | None:
    """The branch's tip where git keeps it in a file of its own, as it does after every commit. Needs no process."""
    try:
        return (common_dir / "refs" / "heads" / branch).read_text().strip()
    except OSError:
        return None
