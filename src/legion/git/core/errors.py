"""Git errors.

GitProblem
├── GitMissing, GitTooOld             the program itself
├── GitError                          git ended with an unexpected exit code
│   ├── GitTimedOut
│   └── TreeNotMade                   files of a commit cannot be written
│       ├── ObjectsUnreadable
│       └── FilterFailed              a filter of the person's git settings
├── NotARepository, UnusableRepository, RepositoryGone, BranchGone      the person's repository
├── FolderGone                        a folder in which git should run, a hub for example
├── RemoteUnreachable                a remote does not answer, or refuses
├── TargetMoved                       another writer moved the target first
├── BoardMoved, BoardUnreadable       what the hub holds of the board
├── TreeGone                          a worktree is not where it should be
├── TreeUnreadable                    git could not read a worktree, perhaps because it changed meanwhile
└── CollectRefused                    the person's branch cannot be moved safely
"""

from __future__ import annotations

import re
from pathlib import Path

from legion.domain.errors import BadInput, LegionError, Retryable, StateConflict

_LONGEST = 200
"""Characters of what git said that a sentence repeats."""


class GitProblem(LegionError):
    """Base of everything this room raises."""


class GitMissing(GitProblem):
    def __init__(self) -> None:
        super().__init__("The git program is not on PATH; install git 2.38 or newer.")


class GitTooOld(GitProblem):
    def __init__(self, found: str) -> None:
        super().__init__(f"This git is version {found}, but Legion needs 2.38 or newer; update git.")


class GitError(GitProblem):
    """`argv` is what was run, `complaint` what git said."""

    def __init__(self, argv: tuple[str, ...], complaint: str) -> None:
        self.argv = argv
        self.complaint = complaint
        super().__init__(f"git {argv[1] if len(argv) > 1 else ''} failed: {complaint}")


class GitTimedOut(GitError):
    def __init__(self, argv: tuple[str, ...], seconds: float) -> None:
        super().__init__(argv, f"it was stopped after {seconds:g} seconds")


class TreeNotMade(GitError):
    """Files of a commit cannot be written, and trying again changes nothing: the message says what would."""


class ObjectsUnreadable(TreeNotMade):
    SAID = re.compile("(unable to|cannot|could not) read|missing (blob|tree|object)|bad object|corrupt|is empty", re.I)

    def __init__(self, failed: GitError) -> None:
        self.argv, self.complaint = failed.argv, failed.complaint
        said = " ".join(failed.complaint.split())[:_LONGEST]
        GitProblem.__init__(
            self,
            f"Git cannot read all files of the project ({said}): `git fsck` in your repository shows what is damaged; "
            "repair it, or clone it again and run `legion init` there.",
        )


class FilterFailed(TreeNotMade):
    """A filter of the person's git settings ended with an error."""

    def __init__(self, names: tuple[str, ...], failed: GitError) -> None:
        self.argv, self.complaint = failed.argv, failed.complaint
        said = " ".join(failed.complaint.split())[-_LONGEST:]
        GitProblem.__init__(
            self,
            f"The git filter {' or '.join(names)} failed in the sandbox ({said}): its program and what it reads must "
            "be visible there (`[sandbox] read` in your settings), and a locked repository must be unlocked.",
        )


class NotARepository(GitProblem, BadInput):
    """No checkout of a git repository at this path."""


class UnusableRepository(GitProblem, BadInput):
    """A repository that Legion cannot work from; the message says what would change that."""


class BranchGone(GitProblem, StateConflict):
    def __init__(self, branch: str) -> None:
        self.branch = branch
        super().__init__(f"The branch {branch} is not in the repository any more; create it again or choose another.")


class RepositoryGone(GitProblem, StateConflict):
    def __init__(self, common_dir: Path) -> None:
        super().__init__(
            f"The repository {common_dir} is gone; bring it back, or forget it with `legion init --remove`."
        )


class FolderGone(GitProblem, StateConflict):
    def __init__(self, folder: Path) -> None:
        super().__init__(f"The folder {folder} is gone; bring it back, or let `legion doctor` say what to do.")


class RemoteUnreachable(GitProblem, Retryable):
    """A remote does not answer, or refuses."""

    def __init__(self, why: str) -> None:
        super().__init__(f"git cannot reach the remote ({why}); Legion tries again later.")


class TargetMoved(GitProblem, Retryable):
    def __init__(self, *, expected: str, found: str | None) -> None:
        self.expected = expected
        self.found = found
        super().__init__(f"The target is at {found or 'no commit'} and not at {expected}; read it and try again.")


class BoardMoved(GitProblem, Retryable):
    """Another writer wrote the board first."""


class BoardUnreadable(GitProblem):
    """The message says what is damaged; the caller, which knows the project, completes the sentence."""


class TreeGone(GitProblem):
    """The folder of a worktree is missing or is not a plain folder."""


class TreeUnreadable(GitProblem, Retryable):
    def __init__(self, tree: Path, why: str) -> None:
        said = why.splitlines()[-1][:_LONGEST] if why else "git said nothing"
        super().__init__(f"The worktree {tree} could not be read ({said}); if its agent is writing there, try again.")


class CollectRefused(GitProblem, StateConflict):
    """The message is the sentence for the person."""
