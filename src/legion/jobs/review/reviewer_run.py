"""Prepares a reviewer's run: its own checkout of the change, its own state, its program and its prompt."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from legion.config.files.user import CLAUDE
from legion.domain.agents.teams import READING, TeamStage
from legion.domain.review import diffs
from legion.domain.review.verdicts import ReviewedSince, ReviewRequest, ReviewSubject, findings_of
from legion.domain.runs import Run
from legion.domain.tickets.evidence import criteria_of
from legion.domain.tickets.ticket import Change, State, Ticket
from legion.drivers.profile import DriverProfile, RunInput
from legion.jobs.agent import model_run, spec, teams
from legion.jobs.agent.model_run import AgentProgram
from legion.jobs.checks import approvals, reviewers
from legion.jobs.context import Context, ProjectContext
from legion.jobs.machine_runs import placements
from legion.jobs.machines.travel import MachineJob
from legion.jobs.review import coverage, prompt
from legion.jobs.review.coverage import WHOLE_DIFF
from legion.jobs.review.prompt import RaceAttempt, ReviewMaterial
from legion.jobs.workspace import environment, setup
from legion.runner.spec import write_spec
from legion.store.board import races, receipts, tickets, verdicts
from legion.store.database.transactions import ReadTransaction
from legion.store.work import runs, usage
from legion.system import crash, files, safe_files
from legion.system.crash import Point

_MOST_POINTERS = 20
_LONGEST_LINK = 1000
"""Bytes; git stores a link as a file with its target."""
_ATTEMPTS = "attempts.json"
"""In the run's folder, which no agent can read: which letter is which commit."""


def prepare(context: Context, project: ProjectContext, ticket: Ticket, reading: ReviewRequest, this_run: Run) -> None:
    """Checkout, dependencies, prompt, spec."""
    crash.reach(Point.REVIEW_BEFORE_WORKTREE)
    seat = this_run.seat
    tree = project.worktrees.replant(
        seat, reading.commit, project.hub.tree_of(reading.commit), f"legion/{seat}", attempt=this_run.id
    )
    stage, chosen = _program(context, project, ticket, reading)
    if not _only_reads(stage, chosen):
        setup.ensure(context, project, tree, shows=reading.commit)
        env = environment.prepare(context, project, this_run, tree)
    else:
        # Nothing of the change is executed, so it cannot show its reviewer other files than its own.
        env = environment.bare(context, this_run)
    folder = context.data.runs / this_run.name
    given = folder / "given"
    given.mkdir(parents=True, exist_ok=True)
    paths = spec.run_paths(context, project, this_run, chosen, tree, given, env, **_variables(reading))
    material = _material(context, project, ticket, reading, lambda diff: _write_diff(tree, diff))
    _write_letters(context, this_run, material)
    run_input = _input(context, project, stage, material, chosen)
    write_spec(folder, model_run.spec(context, this_run, chosen, run_input, paths))


def for_machine(
    context: Context, project: ProjectContext, ticket: Ticket, reading: ReviewRequest, this_run: Run
) -> MachineJob:
    """The same, for another machine to prepare."""
    stage, chosen = _program(context, project, ticket, reading)
    added: dict[str, str] = {}

    def add_diff(diff: str) -> str:
        if project.hub.holds(reading.commit, WHOLE_DIFF):
            return ""
        added[WHOLE_DIFF] = diff
        return WHOLE_DIFF

    material = _material(context, project, ticket, reading, add_diff)
    _write_letters(context, this_run, material)
    run_input = _input(context, project, stage, material, chosen)
    made = placements.read_job(
        context, project, this_run, chosen, run_input, base=reading.commit, title=ticket.spec.title
    )
    runs_something = not _only_reads(stage, chosen)
    return replace(
        made,
        files=added,
        variables=_variables(reading),
        has_setup=runs_something,
        has_environment=runs_something,
    )


def _program(
    context: Context, project: ProjectContext, ticket: Ticket, reading: ReviewRequest
) -> tuple[TeamStage, AgentProgram]:
    stage = reviewers.stage(context, project, ticket, reading.reader)
    driver = stage.role.driver or context.user.reviewer.driver or CLAUDE
    return stage, spec.choose_program(context, project.config, "", driver)


def _only_reads(stage: TeamStage, chosen: AgentProgram) -> bool:
    return chosen.capabilities.reads_only and stage.tools is not None and stage.tools <= READING


def _variables(reading: ReviewRequest) -> dict[str, str]:
    return {"LEGION_ROLE": reading.reader, "LEGION_ROUND": str(reading.round)}


def subject(
    context: Context, project: ProjectContext, ticket: Ticket, reading: ReviewRequest, this_run: Run
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
        root=coverage.tree_of(context, project, this_run),
        unseen=coverage.unseen(context, project, reading, this_run, paths),
        attempts=_letters(context, this_run),
    )


def _write_letters(context: Context, this_run: Run, material: ReviewMaterial) -> None:
    folder = context.data.runs / this_run.name
    folder.mkdir(parents=True, exist_ok=True)
    files.write_atomic(folder / _ATTEMPTS, json.dumps({one.letter: one.commit for one in material.attempts}))


def _letters(context: Context, this_run: Run) -> dict[str, str]:
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
    context: Context, project: ProjectContext, stage: TeamStage, material: ReviewMaterial, chosen: AgentProgram
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
    context: Context,
    project: ProjectContext,
    ticket: Ticket,
    reading: ReviewRequest,
    write_diff: Callable[[str], str],
) -> ReviewMaterial:
    """`write_diff` puts the complete difference into the checkout and returns its path; empty: it cannot."""
    with context.store.read() as tx:
        seen = verdicts.said_by(tx, ticket.id, reading.reader)
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


def _write_diff(tree: Path, diff: str) -> str:
    """The file with the complete diff; empty where the change has a file of that name."""
    try:
        safe_files.write(tree, WHOLE_DIFF, diff.encode())
    except OSError:
        return ""
    return WHOLE_DIFF


def _pointers(project: ProjectContext, ticket: Ticket, change: Change) -> list[str]:
    weak = [f"{one.path}: {approvals.sentence(one)}" for one in approvals.find_weakenings(project, ticket, change)]
    guarded = [f"{path} is protected" for path in reviewers.change_scope(project, ticket, change).protected]
    return [*weak, *guarded][:_MOST_POINTERS]
