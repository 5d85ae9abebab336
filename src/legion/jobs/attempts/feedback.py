"""Feedback to an agent about its last attempt: precise, short, with the end of the output that it needs."""

from __future__ import annotations

from collections.abc import Sequence

from legion.domain.checks import Receipt
from legion.domain.landing.repository_files import FaultyEntry
from legion.domain.review.verdicts import Finding, Severity
from legion.git.merge.conflicts import ConflictFile

_MOST = 12_000
_LONGEST_PATH = 200


def program_failed(how: str, tail: str) -> str:
    return _fit(
        f"Your program ended early ({how}). What you had written is still in the tree. "
        f"Its output ended with:\n\n{_quote(tail)}"
    )


def changed_nothing(
    left_out: Sequence[str],
    denied: str = "",
    *,
    unsaved: Sequence[str] = (),
    elsewhere: Sequence[str] = (),
    submodules: Sequence[str] = (),
) -> str:
    """`left_out`: paths of [setup] that it edited; `denied`: what it was not allowed to do; `unsaved`: files that git
    cannot store; `elsewhere`: branches and the stash, where its work is; `submodules`: those that it changed.
    """
    if unsaved:
        return _fit(
            "You changed nothing that can land: git cannot store what you made. Use plain files with shorter paths "
            f"that you can read yourself:\n\n{_listed(unsaved)}"
        )
    if elsewhere:
        ways = [f"`git {'stash pop' if name == 'refs/stash' else f'merge {name}'}`" for name in elsewhere]
        return _fit(
            "You left your worktree exactly as it was, and only what is in the worktree lands. Your repository has "
            f"work that is not checked out; bring it into the worktree:\n\n{_listed(ways)}"
        )
    if submodules:
        return _fit(
            "You changed nothing but submodules, and a change does not move those. Make it in files of the project "
            f"itself:\n\n{_listed(submodules)}"
        )
    if left_out:
        listed = "\n".join(f"- {path}" for path in left_out)
        return _fit(
            "You changed nothing that can land: these paths are made by the project's setup, so they are part of no "
            f"change. Make it in files of the project itself:\n\n{listed}"
        )
    return (
        f"You left the tree exactly as it was{denied}, so there is nothing to land. Make the change that the ticket "
        "asks for; if it is there already, add a test that shows it."
    )


def gave_up(why: str) -> str:
    return _fit(f"You gave up the last time, for this reason:\n\n{_quote(why)}")


_SECRETS = """\
Your change holds what looks like secrets. Remove them from the files and from every commit that you made (make one new
commit of all of them), and read such values from the environment instead:"""


def touched_protected(
    paths: Sequence[str], signs: Sequence[str] = (), reason: str = "", *, many: int = 0, secrets: Sequence[str] = ()
) -> str:
    """`signs`: how tests look weaker; `reason`: that of the person who refused it; `many`: too many files."""
    parts = [f"Your change has {many} files, which is too many; remove those that it does not need."] if many else []
    if secrets:
        parts.append(f"{_SECRETS}\n\n{_listed(secrets)}")
    if paths:
        parts.append(
            f"You changed files that this ticket may not touch; put them back as they were:\n\n{_listed(paths)}"
        )
    if signs:
        parts.append(f"What was found in them:\n\n{_listed(signs)}")
    if reason:
        parts.append(f"A person read it and said no:\n\n{_quote(reason)}")
    return _fit("\n\n".join(parts))


def sent_back_by_hook(text: str) -> str:
    return _fit(f"The person has a rule that your change does not meet yet. Its text:\n\n{_quote(text)}")


def repository_files(found: Sequence[FaultyEntry]) -> str:
    listed = _listed([f"{one.path[:_LONGEST_PATH]}: {one.fault.value}" for one in found])
    return _fit(f"Your change holds files that can never land; remove them or give them other names:\n\n{listed}")


def reviewed(summary: str, findings: Sequence[Finding], reason: str = "") -> str:
    """`reason`: that of a person who sent it back."""
    must = [f"{one.place}: {one.text}" for one in findings if one.weight is Severity.BLOCKING]
    rest = [one for one in findings if one.weight is not Severity.BLOCKING]
    may = [f"{one.weight.value}, {one.place or 'the change'}: {one.text}" for one in rest]
    parts = [f"A person read your change and sent it back:\n\n{_quote(reason)}"] if reason else []
    if summary:
        parts.append(f"An independent reviewer read your change and did not approve it:\n\n{_quote(summary)}")
    if must:
        parts.append(f"This has to be dealt with:\n\n{_listed(must)}")
    if may:
        parts.append(f"This was noticed, too, and blocks nothing:\n\n{_listed(may)}")
    return _fit("\n\n".join(parts))


def _listed(rows: Sequence[str]) -> str:
    return "\n".join(f"- {row}" for row in rows)


def unreadable_settings(wrong: str) -> str:
    return _fit(f"You changed the project's settings so that they can no longer be read; fix this:\n\n{_quote(wrong)}")


def left_markers(paths: Sequence[str]) -> str:
    listed = "\n".join(f"- {path}" for path in paths)
    return _fit(f"Conflict markers are still in these files; decide each place and remove the markers:\n\n{listed}")


def unfinished(operation: str, remedy: str) -> str:
    return (
        f"You left a git {operation} unfinished in your worktree, so the tree may hold conflicts, and nothing of it "
        f"lands. Resolve them and finish it: {remedy}."
    )


def checks_failed(receipts: Sequence[Receipt], *, landed: bool = False) -> str:
    where = "the landed code" if landed else "your change, together with what has landed meanwhile"
    parts = [f"These commands failed on {where}:"]
    for receipt in receipts:
        if receipt.held_out:
            parts.append(f"### {receipt.name}\n\nThis one is not shown to you: do exactly what the ticket says.")
            continue
        how = f"exit code {receipt.exit_code}" if receipt.exit_code is not None else "no result"
        parts.append(f"### `{receipt.command}` ({how}, {receipt.duration:.1f} s)\n\n{_quote(receipt.tail)}")
    return _fit("\n\n".join(parts))


def conflict(files: Sequence[ConflictFile]) -> str:
    parts = [f"### {file.path}\n\n{_quote(file.hunks)}" for file in files]
    return _fit("\n\n".join([_CONFLICT, *parts]))


_CONFLICT = """\
Other changes landed meanwhile and touch the same lines. The tree now holds the landed code merged with yours; each
place where both changed the same lines is between conflict markers. Resolve each place so that both intentions
hold, and remove the markers."""


def _quote(text: str) -> str:
    lines = text.rstrip().splitlines() or ["(nothing)"]
    return "\n".join(f"    {line}" for line in lines)


def _fit(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[: _MOST // 2]}\n\n[... cut ...]\n\n{text[-_MOST // 2 :]}"
