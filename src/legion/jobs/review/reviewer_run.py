"""Prepares a reviewer's run: its own checkout of the change, its own state, its program and its prompt.

The journal proves this only for a driver that can be limited to reading; otherwise the reviewer's own list counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePosixPath

from legion.config.files.user import CLAUDE
from legion.domain.agents.teams import READING, TeamStage
from legion.domain.review import diffs
from legion.domain.review.verdicts import ReviewedSince, ReviewRequest, ReviewSubject, findings_of
from legion.domain.runs import Run
from legion.domain.tickets.evidence import criteria_of
from legion.domain.tickets.ticket import Change, State, Ticket
from legion.drivers.profile import DriverProfile, RunInput
from legion.jobs.agent import model_run, spec, teams
from legion.jobs.agent.model_run import AgentProgram, PreparedInput
from legion.jobs.agent.preparation import Workplace
from legion.jobs.board import Board
from legion.jobs.checks import approvals, reviewers
from legion.jobs.machine_runs import executor
from legion.jobs.review import prompt
from legion.jobs.review.prompt import RaceAttempt, ReviewMaterial
from legion.jobs.trees import ProjectContext, Trees
from legion.runner.journal import JournalEvent, read_journal
from legion.runner.spec import read_spec
from legion.store.board import races, receipts, tickets, verdicts
from legion.store.database.transactions import ReadTransaction
from legion.store.work import runs, usage
from legion.system import files

WHOLE_DIFF = ".legion-change.diff"
"""Holds the diff that does not fit into the prompt, in the reviewer's checkout, which is thrown away."""
_READ = "Read"


def files_opened(
    context: Board, project: ProjectContext, reading: ReviewRequest, this_run: Run
) -> frozenset[str] | None:
    """The files that it opened for this review; None where the journal cannot prove it."""
    spec = read_spec(context.data.runs / this_run.name)
    tools = spec.profile.tools(spec.options) if spec.profile.capabilities.reads_only else None
    if tools is None or _READ not in tools or not READING.issuperset(tools):
        return None
    with context.store.read() as tx:
        since = [run for run in runs.of_seat(tx, this_run) if run.started_at >= reading.asked_at]
    found: set[str] = set()
    for run in since:
        root = f"{executor.tree_path(context, project, run)}/"
        opened = _read_files(read_journal(context.data.runs / run.name))
        found.update(path.removeprefix(root).removeprefix("./") for path in opened)
    return frozenset(found)


def unseen(
    context: Board, project: ProjectContext, reading: ReviewRequest, this_run: Run, changed: Iterable[str]
) -> tuple[str, ...]:
    """Those of the changed files that were cut short in its prompt and that it never opened."""
    with context.store.read() as tx:
        earlier = verdicts.said_by(tx, reading.ticket, reading.reviewer)
    shown = project.hub.diff(earlier[-1].commit if earlier else reading.base, reading.commit)
    cut = frozenset(prompt.cut_short(shown))
    if not cut or (found := files_opened(context, project, reading, this_run)) is None or WHOLE_DIFF in found:
        return ()
    return tuple(path for path in changed if path in cut and _as_recorded(path) not in found)


def _read_files(events: Iterable[JournalEvent]) -> list[str]:
    """The inputs of all successful read calls."""
    asked: dict[object, str] = {}
    found = []
    for event in events:
        if event.kind == "called" and event.facts.get("tool") == _READ:
            asked[event.facts.get("call")] = str(event.facts.get("input"))
        elif event.kind == "returned" and event.facts.get("call") in asked and not event.facts.get("failed"):
            found.append(asked[event.facts.get("call")])
    return found


def _as_recorded(path: str) -> str:
    """A journal stores every input in one line."""
    return " ".join(path.split())


_MOST_POINTERS = 20
_LONGEST_LINK = 1000
"""Bytes; git stores a link as a file with its target."""
_ATTEMPTS = "attempts.json"
"""In the run's folder, which no agent can read: which letter is which commit."""


def place(context: Trees, project: ProjectContext, ticket: Ticket, reading: ReviewRequest) -> Workplace:
    """A checkout of the change. Nothing of it is executed for a reviewer that only reads."""
    stage, chosen = _program(context, project, ticket, reading)
    runs_something = not _only_reads(stage, chosen)
    return Workplace(
        program=chosen,
        title=ticket.spec.title,
        base=reading.commit,
        shows=reading.commit,
        has_setup=runs_something,
        has_environment=runs_something,
        variables={"LEGION_ROLE": reading.reviewer, "LEGION_ROUND": str(reading.round)},
    )


def prepared_input(
    context: Trees, project: ProjectContext, ticket: Ticket, reading: ReviewRequest, this_run: Run
) -> PreparedInput:
    stage, chosen = _program(context, project, ticket, reading)
    added: dict[str, str] = {}

    def add_diff(diff: str) -> str:
        if project.hub.holds(reading.commit, WHOLE_DIFF) or project.hub.files_in(reading.commit, WHOLE_DIFF):
            return ""
        added[WHOLE_DIFF] = diff
        return WHOLE_DIFF

    material = _material(context, project, ticket, reading, add_diff)
    _write_letters(context, this_run, material)
    return PreparedInput(program=chosen, input=_input(context, project, stage, material, chosen), files=added)


def _program(
    context: Board, project: ProjectContext, ticket: Ticket, reading: ReviewRequest
) -> tuple[TeamStage, AgentProgram]:
    stage = reviewers.stage(context, project, ticket, reading.reviewer)
    driver = stage.role.driver or context.user.reviewer.driver or CLAUDE
    return stage, spec.choose_program(context, project.config, "", driver)


def _only_reads(stage: TeamStage, chosen: AgentProgram) -> bool:
    return chosen.capabilities.reads_only and stage.tools is not None and stage.tools <= READING


def subject(
    context: Board, project: ProjectContext, ticket: Ticket, reading: ReviewRequest, this_run: Run
) -> ReviewSubject:
    """The facts that its verdict is checked against."""
    paths = tuple(file.path for file in project.hub.changed_files(reading.base, reading.commit))
    return ReviewSubject(
        changed=paths,
        # A path that cannot be printed was not copied from the list of files.
        exists=lambda path: (
            path in paths
            or (
                path.isprintable() and any(project.hub.holds(commit, path) for commit in (reading.commit, reading.base))
            )
        ),
        criteria=len(criteria_of(ticket.spec.criteria)),
        checklist=project.config.review.checklist,
        root=executor.tree_path(context, project, this_run),
        unseen=unseen(context, project, reading, this_run, paths),
        attempts=_letters(context, this_run),
    )


def _write_letters(context: Board, this_run: Run, material: ReviewMaterial) -> None:
    folder = context.data.runs / this_run.name
    folder.mkdir(parents=True, exist_ok=True)
    files.write_atomic(folder / _ATTEMPTS, json.dumps({one.letter: one.commit for one in material.attempts}))


def _letters(context: Board, this_run: Run) -> dict[str, str]:
    """The attempts that the reviewer was shown, whatever has finished since."""
    try:
        found: dict[str, str] = json.loads((context.data.runs / this_run.name / _ATTEMPTS).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    return found


def since(project: ProjectContext, before: ReviewRequest | None, reading: ReviewRequest) -> ReviewedSince | None:
    """What has changed since the reviewer's last verdict; None where there is none."""
    if before is None:
        return None
    found = diffs.read(project.hub.patch(before.commit, reading.commit))
    return ReviewedSince(lines={file.path: [_line_range(hunk) for hunk in file.hunks] for file in found})


def _line_range(hunk: diffs.Hunk) -> tuple[int, int]:
    return hunk.place, hunk.added[-1].number if hunk.added else hunk.place


def _input(
    context: Board, project: ProjectContext, stage: TeamStage, material: ReviewMaterial, chosen: AgentProgram
) -> RunInput:
    ticket = material.ticket
    instructions = _instruction_files(project, material.reading.commit, chosen.driver)
    with context.store.read() as tx:
        spent = usage.of_ticket(tx, ticket.id).usd
    return RunInput(
        prompt=prompt.first(material),
        resume_prompt=prompt.again(material),
        rules=f"{prompt.RULES}\n\n{stage.role.prompt}".strip(),
        model=reviewers.model(context, ticket, stage),
        allowance=model_run.allowance(context, ticket),
        spent=spent,
        tools=teams.tools(stage, ticket),
        provider=stage.role.provider,
        role=stage.role.name,
        team=teams.of_ticket(context, ticket).team,
        # A change must not bring rules for its reviewer.
        reads_instructions=not any(file.path in instructions for file in material.files),
    )


def _instruction_files(project: ProjectContext, commit: str, driver: DriverProfile) -> set[str]:
    """The files that hold the repository's instructions, and those that they may be links to."""
    found = set(driver.instruction_files)
    for path in driver.instruction_files:
        content = project.hub.read_file(commit, path) or b""
        if 0 < len(content) < _LONGEST_LINK and b"\n" not in content:
            target = content.decode("utf-8", "replace")
            found.add(os.path.normpath(PurePosixPath(path).parent / target))
    return found


def _material(
    context: Board, project: ProjectContext, ticket: Ticket, reading: ReviewRequest, write_diff: Callable[[str], str]
) -> ReviewMaterial:
    """`write_diff` puts the complete difference into the checkout and returns its path; empty: it cannot."""
    with context.store.read() as tx:
        seen = verdicts.said_by(tx, ticket.id, reading.reviewer)
        built, advice = runs.latest(tx, ticket.id), teams.advice_for_builder(tx, ticket)
        ran = list(receipts.of_ticket(tx, ticket.id))
        ran += receipts.for_commit(tx, ticket.project, ticket.landed) if ticket.landed else ()
        rivals = _rivals(tx, ticket)
    change = Change(base=reading.base, commit=reading.commit)
    diff = project.hub.diff(change.base, change.commit)
    # A held-out check must not reach the builder through a finding.
    began = built.started_at if built is not None else 0.0
    fresh = {one.command: one for one in ran if one.made_at >= began and not one.held_out}
    commands = [check.command for check in project.config.checks if check.command not in fresh]
    new = project.hub.diff(seen[-1].commit, reading.commit) if seen else ""
    cut = prompt.cut_short(diff) or prompt.cut_short(new)
    return ReviewMaterial(
        ticket=ticket,
        reading=reading,
        files=project.hub.changed_files(change.base, change.commit),
        diff=diff,
        since=new,
        said=findings_of(seen),
        receipts=tuple(fresh.values()),
        to_run=[] if ticket.ended else commands,
        pointers=_pointers(project, ticket, change),
        advice=advice,
        attempts=_attempts(project, change, rivals),
        whole_diff=write_diff(diff) if cut else "",
        checklist=project.config.review.checklist,
    )


def _attempts(project: ProjectContext, change: Change, rivals: Sequence[Change]) -> list[RaceAttempt]:
    """In the order of their texts, which says nothing about their authors."""
    if not rivals:
        return []
    commits = {one.commit: project.hub.diff(one.base, one.commit) for one in (change, *rivals)}
    ordered = sorted(commits.items(), key=lambda one: (one[1], one[0]))
    return [RaceAttempt(letter=chr(65 + n), commit=commit, diff=diff) for n, (commit, diff) in enumerate(ordered)]


def _rivals(tx: ReadTransaction, ticket: Ticket) -> list[Change]:
    """Proven changes of the other lanes of its race, while that is not decided."""
    lanes = [lane.ticket for lane in races.of_ticket(tx, ticket.id) if lane.won is None and lane.ticket != ticket.id]
    there = tickets.get_many(tx, tickets.states_of(tx, lanes))
    return [one.change for one in there if one.change and one.state in (State.REVIEWING, State.LANDING)]


def _pointers(project: ProjectContext, ticket: Ticket, change: Change) -> list[str]:
    weak = [f"{one.path}: {approvals.sentence(one)}" for one in approvals.find_weakenings(project, ticket, change)]
    guarded = [f"{path} is protected" for path in reviewers.change_scope(project, ticket, change).protected]
    return [*weak, *guarded][:_MOST_POINTERS]
