"""A reader's run: its own checkout of the change, its own state, its program, and what it is told."""

from __future__ import annotations

from pathlib import Path

from legion.config.files.user import CLAUDE
from legion.domain.agents.teams import READING, TeamStage
from legion.domain.review import diffs
from legion.domain.review.verdicts import ReviewedSince, ReviewRequest, ReviewSubject, findings_of
from legion.domain.runs import Run
from legion.domain.tickets.evidence import criteria_of
from legion.domain.tickets.ticket import Change, Ticket
from legion.drivers.registry import DriverName
from legion.jobs.agent import claude, spec, teams
from legion.jobs.agent.claude import RunInput, RunPaths
from legion.jobs.agent.spec import AgentProgram
from legion.jobs.checks import approvals, reviewers
from legion.jobs.context import Context, ProjectContext
from legion.jobs.review import coverage, prompt
from legion.jobs.review.coverage import WHOLE_DIFF
from legion.jobs.review.prompt import ReviewMaterial
from legion.jobs.workspace import environment, safe_files, setup
from legion.runner.journal import read_journal
from legion.runner.spec import RunFolder, RunSpec, read_spec, write_spec
from legion.store.board import receipts, verdicts
from legion.store.work import runs, usage
from legion.system import crash
from legion.system.crash import Point

_LONGEST_OUTPUT = 400_000
_MOST_POINTERS = 20


def prepare(
    context: Context, project_context: ProjectContext, ticket: Ticket, reading: ReviewRequest, this_run: Run
) -> None:
    """Checkout, dependencies, prompt, spec."""
    crash.reach(Point.REVIEW_BEFORE_WORKTREE)
    seat = this_run.seat
    tree = project_context.worktrees.replant(
        seat, reading.commit, project_context.hub.tree_of(reading.commit), f"legion/{seat}", attempt=this_run.id
    )
    stage = reviewers.stage(context, project_context, ticket, reading.reader)
    chosen = spec.agent(
        context, project_context.config, "", stage.role.driver or context.user.reviewer.driver or CLAUDE
    )
    runs_things = chosen.argv is not None or stage.tools is None or not stage.tools <= READING
    if runs_things:
        setup.ensure(context, project_context, tree, setup.record_of(project_context, tree))
        around = environment.prepare(context, project_context, this_run, tree)
    else:
        # Nothing of the change is run there, so it cannot show its reader other files than its own.
        around = environment.bare(context, this_run)
    folder = context.data.runs / this_run.name
    given = folder / "given"
    given.mkdir(parents=True, exist_ok=True)
    told = {"LEGION_ROLE": reading.reader, "LEGION_ROUND": str(reading.round)}
    place = spec.place(context, project_context, this_run, chosen, tree, given, around, **told)
    matter = _matter(context, project_context, ticket, reading, tree)
    write_spec(folder, _spec(context, project_context, this_run, matter, stage, chosen, place))


def subject(
    context: Context, project_context: ProjectContext, ticket: Ticket, reading: ReviewRequest, this_run: Run
) -> ReviewSubject:
    """What its answer is held against."""
    paths = tuple(file.path for file in project_context.hub.changed_files(reading.base, reading.commit))
    return ReviewSubject(
        changed=paths,
        # What cannot be printed comes from nobody who has read the list of files.
        exists=lambda path: (
            path in paths
            or (
                path.isprintable()
                and any(project_context.hub.holds(commit, path) for commit in (reading.commit, reading.base))
            )
        ),
        criteria=len(criteria_of(ticket.spec.criteria)),
        root=str(project_context.worktrees.path(this_run.seat)),
        unseen=coverage.unseen(context, project_context, reading, this_run, paths),
    )


def last_words(context: Context, this_run: Run) -> str:
    """The last message of a conversation, or all that a plain program printed. Never a file of its tree."""
    folder = context.data.runs / this_run.name
    if read_spec(folder).driver is DriverName.COMMAND:
        return _output(RunFolder(folder).output)
    said = [event.facts.get("text") for event in read_journal(folder) if event.kind == "result"]
    return str(said[-1] or "") if said else ""


def since(
    project_context: ProjectContext, before: ReviewRequest | None, reading: ReviewRequest
) -> ReviewedSince | None:
    """What has changed since the reader's last verdict; None where there is none."""
    if before is None:
        return None
    found = diffs.read(project_context.hub.patch(before.commit, reading.commit))
    return ReviewedSince(lines={file.path: [_place(hunk) for hunk in file.hunks] for file in found})


def _place(hunk: diffs.Hunk) -> tuple[int, int]:
    return hunk.place, hunk.added[-1].number if hunk.added else hunk.place


def _output(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _LONGEST_OUTPUT))
            return file.read().decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


def _spec(
    context: Context,
    project_context: ProjectContext,
    this_run: Run,
    matter: ReviewMaterial,
    stage: TeamStage,
    chosen: AgentProgram,
    place: RunPaths,
) -> RunSpec:
    if chosen.argv is None:
        errand = _errand(context, stage, matter, place.tree)
        return claude.spec(context, this_run, errand, place, chosen.timeout)
    words = f"{prompt.RULES}\n\n{stage.role.prompt}\n\n{prompt.first(matter)}"
    return spec.plain(this_run, chosen, place, words)


def _errand(context: Context, stage: TeamStage, matter: ReviewMaterial, tree: Path) -> RunInput:
    ticket, words = matter.ticket, {*claude.WORDS, *claude.places_of_words(tree)}
    with context.store.read() as tx:
        spent = usage.of_ticket(tx, ticket.id).usd
    return RunInput(
        prompt=prompt.first(matter),
        again=prompt.again(matter),
        rules=f"{prompt.RULES}\n\n{stage.role.prompt}".strip(),
        model=reviewers.model(context, ticket, stage),
        allowance=claude.allowance(context, ticket),
        spent=spent,
        tools=teams.tools(stage, ticket),
        provider=stage.role.provider,
        role=stage.role.name,
        team=teams.of_ticket(context, ticket).team,
        # A change must not bring rules for who reads it.
        obeys=not any(file.path in words for file in matter.files),
    )


def _matter(
    context: Context, project_context: ProjectContext, ticket: Ticket, reading: ReviewRequest, tree: Path
) -> ReviewMaterial:
    with context.store.read() as tx:
        seen = verdicts.said_by(tx, ticket.id, reading.reader)
        built, advice = runs.latest(tx, ticket.id), teams.advised(tx, ticket)
        ran = list(receipts.of_ticket(tx, ticket.id))
        ran += receipts.for_commit(tx, ticket.project, ticket.landed) if ticket.landed else ()
    change = Change(base=reading.base, commit=reading.commit)
    diff = project_context.hub.diff(change.base, change.commit)
    # What is held out must not reach the builder by way of a finding.
    began = built.started_at if built is not None else 0.0
    fresh = {one.command: one for one in ran if one.made_at >= began and not one.held_out}
    commands = [check.command for check in project_context.config.checks if check.command not in fresh]
    new = project_context.hub.diff(seen[-1].commit, reading.commit) if seen else ""
    cut = prompt.cut_short(diff) or prompt.cut_short(new)
    return ReviewMaterial(
        ticket=ticket,
        reading=reading,
        files=project_context.hub.changed_files(change.base, change.commit),
        diff=diff,
        since=new,
        said=findings_of(seen),
        receipts=tuple(fresh.values()),
        to_run=[] if ticket.ended else commands,
        pointers=_pointers(project_context, ticket, change),
        advice=advice,
        whole_diff=_beside(tree, diff) if cut else "",
    )


def _beside(tree: Path, diff: str) -> str:
    """The file with all of it; empty where the change itself stands in its place."""
    try:
        safe_files.write(tree, WHOLE_DIFF, diff.encode())
    except OSError:
        return ""
    return WHOLE_DIFF


def _pointers(project_context: ProjectContext, ticket: Ticket, change: Change) -> list[str]:
    weak = [f"{one.path}: {approvals.sentence(one)}" for one in approvals.found_weak(project_context, ticket, change)]
    guarded = [f"{path} is protected" for path in reviewers.touch(project_context, ticket, change).protected]
    return [*weak, *guarded][:_MOST_POINTERS]
