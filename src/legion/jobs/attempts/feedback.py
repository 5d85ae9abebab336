"""Feedback to an agent about its last attempt: precise, short, with the end of the output that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from legion.domain.checks import Receipt
from legion.domain.landing import definitions
from legion.domain.landing.repository_files import FaultyEntry
from legion.domain.review.verdicts import Finding, Severity
from legion.domain.text import count
from legion.domain.tickets.ticket import Change, Ticket
from legion.git.merge.candidates import MergeConflict
from legion.git.merge.conflicts import ConflictFile
from legion.jobs.board import Board
from legion.jobs.trees import ProjectContext
from legion.store.board import tickets

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


def checks_failed(
    receipts: Sequence[Receipt],
    *,
    where: str = "your change, together with what has landed meanwhile",
    owners: Sequence[Ticket] = (),
) -> str:
    parts = [f"These commands failed on {where}:"]
    for receipt in receipts:
        if receipt.held_out:
            parts.append(f"### {receipt.name}\n\nThis one is not shown to you: do exactly what the ticket says.")
            continue
        how = f"exit code {receipt.exit_code}" if receipt.exit_code is not None else "no result"
        owner = next((one for one in owners if one.id == receipt.ticket), None)
        whose = f"\n\n{_PROOF_OF.format(owner.id, owner.spec.title)}" if owner is not None else ""
        parts.append(f"### `{receipt.command}` ({how}, {receipt.duration:.1f} s){whose}\n\n{_quote(receipt.tail)}")
    return _fit("\n\n".join(parts))


@dataclass(frozen=True, kw_only=True)
class BothChanged:
    """A definition that both sides of a conflict changed; empty where a side has none."""

    path: str
    name: str
    base: str
    landed: str
    mine: str


def conflict(
    files: Sequence[ConflictFile], others: Sequence[Ticket] = (), both: Sequence[BothChanged] = (), clean: int = 0
) -> str:
    """`others`: the landed tickets that it conflicts with; `clean`: how many files were merged without a conflict."""
    known = {one.path for one in both}
    parts = [_intent(one) for one in others]
    parts += [_versions(one) for one in both]
    parts += [f"### {file.path}\n\n{_quote(file.hunks)}" for file in files if file.path not in known]
    if why := [f"{file.path}: {file.refused}" for file in files if file.refused]:
        parts.append(f"Legion did not merge these by definition:\n\n{_listed(why)}")
    if clean:
        parts.append(f"{count(clean, 'other file')} of your change merged without a conflict; leave it so.")
    return _fit("\n\n".join([_CONFLICT, *parts]))


CONFLICT_BEFORE = "## The conflict that is to be resolved, as it was when it was met\n\n"
_MOST_FILES, _MOST_OTHERS = 8, 3


def both_sides(
    context: Board,
    project: ProjectContext,
    ticket: Ticket,
    target: str,
    found: MergeConflict,
    since: Iterable[tuple[int, str, str]],
) -> tuple[str, tuple[str, ...]]:
    """The feedback about a conflict: whose work it is in conflict with, and both versions of each definition; and the
    claims about which it is, where such tickets are ordered.

    `since`: what landed since the ticket was dispatched: ticket, commit, and the commit before that.
    """
    hub, change = project.hub, ticket.change
    base = hub.merge_base(target, change.commit) if change is not None else None
    settings = project.config.conflicts
    if change is None or base is None:
        return conflict(found.files), ()
    if ticket.behind is not None:
        base = change.base

    def text(commit: str, path: str) -> str:
        return (hub.read_file(commit, path) or b"")[: 1 << 20].decode("utf-8", "replace")

    paths = [file.path for file in found.files][:_MOST_FILES]
    both: dict[tuple[str, str], BothChanged] = {}
    for path in paths:
        before = text(base, path)
        landed = definitions.changed(path, before, text(target, path))
        mine = definitions.changed(path, before, text(change.commit, path))
        both |= {
            (path, name): BothChanged(
                path=path, name=name, base=landed[name][0], landed=landed[name][1], mine=mine[name][1]
            )
            for name in landed
            if name in mine and landed[name] != mine[name]
        }
    names = {f"{path}::{name}" for path, name in both} or {f"{one.path}::" for one in found.files}
    lost = tuple(sorted(names)) if settings.order else ()
    others: dict[int, int] = {}
    for other, commit, under in since:
        if other == ticket.id or hub.is_ancestor(commit, base):
            continue
        touched = {one.path for one in hub.changed_files(under, commit)}.intersection(paths)
        shared = {(p, name) for p in touched for name in definitions.changed(p, text(under, p), text(commit, p))}
        if touched and (shared & both.keys() or not both):
            others[other] = len(shared & both.keys())
    most = sorted(others, key=lambda id: (-others[id], -id))[:_MOST_OTHERS]
    with context.store.read() as tx:
        sides = tickets.get_many(tx, most)
    clean = len({one.path for one in hub.changed_files(base, change.commit)}.difference(paths))
    return conflict(found.files, sides, list(both.values())[:_MOST_FILES], clean), lost


def claims_of(context: Board, project: ProjectContext, ticket: Ticket, change: Change) -> tuple[str, ...]:
    """What a change touches, where another ticket may have to know; a file as a whole where no definition is known."""
    if not (ticket.spec.proofs or ticket.claims or context.live.guesses.get(ticket.id)):
        return ()
    return touched(project, change.base, change.commit)


def touched(project: ProjectContext, base: str, commit: str) -> tuple[str, ...]:
    paths = [one.path for one in project.hub.changed_files(base, commit) if "\n" not in one.path][:_MOST_TOUCHED]
    texts = project.hub.contents([f"{side}:{path}" for path in paths for side in (base, commit)])
    claims: list[str] = []
    for path, before, after in zip(paths, texts[::2], texts[1::2], strict=True):
        sides = (text[: 1 << 20].decode("utf-8", "replace") for text in (before, after))
        claims += [f"{path}::{name}" for name in definitions.changed(path, *sides)] or [f"{path}::"]
    return tuple(claims)


_MOST_TOUCHED = 100


def _intent(other: Ticket) -> str:
    """What the other side wants, which the code alone does not say."""
    spec = other.spec
    parts = [f"## Ticket {other.id} has landed: {spec.title}", _quote(spec.text[:_LONGEST_TEXT])]
    if spec.criteria:
        parts.append(f"It is done when:\n\n{_quote(spec.criteria[:_LONGEST_TEXT])}")
    if spec.proofs:
        parts.append(f"These prove it, and must pass with your change, too:\n\n{_listed(spec.proofs)}")
    return "\n\n".join(parts)


def _versions(one: BothChanged) -> str:
    sides = (("before both", one.base), ("as it landed", one.landed), ("as you wrote it", one.mine))
    shown = [f"{words}:\n\n{_quote(text[:_LONGEST_TEXT] or '(it was not there)')}" for words, text in sides]
    return "\n\n".join([f"### {one.path}: both changed {one.name}", *shown])


_PROOF_OF = "This is a proof of ticket {} ({}), which your change breaks: both intentions must hold."
_LONGEST_TEXT = 1200


_CONFLICT = """\
Other changes landed meanwhile and touch the same lines. The tree now holds the landed code merged with yours; each
place where both changed the same lines is between conflict markers. Resolve each place so that both intentions
hold, and remove the markers."""


def _quote(text: str) -> str:
    lines = text.rstrip().splitlines() or ["(nothing)"]
    return "\n".join(f"    {line}" for line in lines)


def _fit(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[: _MOST // 2]}\n\n[... cut ...]\n\n{text[-_MOST // 2 :]}"
