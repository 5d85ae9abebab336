"""A reader's run: its own checkout of the change, its own state, its program, and what it is told."""

from __future__ import annotations

from pathlib import Path

from legion.config.user import CLAUDE
from legion.domain import diffs
from legion.domain.evidence import criteria_of
from legion.domain.runs import Run
from legion.domain.teams import READING, Stage
from legion.domain.tickets import Change, Ticket
from legion.domain.verdicts import Reading, Since, Subject, findings_of
from legion.drivers.known import DriverName
from legion.jobs import agents, claude, environment, inside, permission, readers, review_words, setup, sight, teams
from legion.jobs.agents import Agent
from legion.jobs.claude import Errand, Place
from legion.jobs.review_words import Matter
from legion.jobs.sight import WHOLE_DIFF
from legion.jobs.world import Workshop, World
from legion.runner.journal import read_journal
from legion.runner.spec import RunFolder, Spec, read_spec, write_spec
from legion.store import receipts, runs, usage, verdicts
from legion.system import crash
from legion.system.crash import Point

_LONGEST_OUTPUT = 400_000
_MOST_POINTERS = 20


def prepare(world: World, shop: Workshop, ticket: Ticket, reading: Reading, this_run: Run) -> None:
    """Checkout, dependencies, prompt, spec."""
    crash.reach(Point.REVIEW_BEFORE_WORKTREE)
    seat = this_run.seat
    tree = shop.worktrees.replant(
        seat, reading.commit, shop.hub.tree_of(reading.commit), f"legion/{seat}", attempt=this_run.id
    )
    stage = readers.stage(world, shop, ticket, reading.reader)
    chosen = agents.agent(world, shop.config, "", stage.role.driver or world.user.reviewer.driver or CLAUDE)
    runs_things = chosen.argv is not None or stage.tools is None or not stage.tools <= READING
    if runs_things:
        setup.ensure(world, shop, tree, setup.record_of(shop, tree))
        around = environment.prepare(world, shop, this_run, tree)
    else:
        # Nothing of the change is run there, so it cannot show its reader other files than its own.
        around = environment.bare(world, this_run)
    folder = world.data.runs / this_run.name
    given = folder / "given"
    given.mkdir(parents=True, exist_ok=True)
    told = {"LEGION_ROLE": reading.reader, "LEGION_ROUND": str(reading.round)}
    place = agents.place(world, shop, this_run, chosen, tree, given, around, **told)
    matter = _matter(world, shop, ticket, reading, tree)
    write_spec(folder, _spec(world, shop, this_run, matter, stage, chosen, place))


def subject(world: World, shop: Workshop, ticket: Ticket, reading: Reading, this_run: Run) -> Subject:
    """What its answer is held against."""
    paths = tuple(file.path for file in shop.hub.changed_files(reading.base, reading.commit))
    return Subject(
        changed=paths,
        # What cannot be printed comes from nobody who has read the list of files.
        exists=lambda path: (
            path in paths
            or (path.isprintable() and any(shop.hub.holds(commit, path) for commit in (reading.commit, reading.base)))
        ),
        criteria=len(criteria_of(ticket.wish.criteria)),
        root=str(shop.worktrees.path(this_run.seat)),
        unseen=sight.unseen(world, shop, reading, this_run, paths),
    )


def last_words(world: World, this_run: Run) -> str:
    """The last message of a conversation, or all that a plain program printed. Never a file of its tree."""
    folder = world.data.runs / this_run.name
    if read_spec(folder).driver is DriverName.COMMAND:
        return _output(RunFolder(folder).output)
    said = [event.facts.get("text") for event in read_journal(folder) if event.kind == "result"]
    return str(said[-1] or "") if said else ""


def since(shop: Workshop, before: Reading | None, reading: Reading) -> Since | None:
    """What has changed since the reader's last verdict; None where there is none."""
    if before is None:
        return None
    found = diffs.read(shop.hub.patch(before.commit, reading.commit))
    return Since(lines={file.path: [_place(hunk) for hunk in file.hunks] for file in found})


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
    world: World, shop: Workshop, this_run: Run, matter: Matter, stage: Stage, chosen: Agent, place: Place
) -> Spec:
    if chosen.argv is None:
        errand = _errand(world, stage, matter, place.tree)
        return claude.spec(world, this_run, errand, place, chosen.timeout)
    words = f"{review_words.RULES}\n\n{stage.role.prompt}\n\n{review_words.first(matter)}"
    return agents.plain(this_run, chosen, place, words)


def _errand(world: World, stage: Stage, matter: Matter, tree: Path) -> Errand:
    ticket, words = matter.ticket, {*claude.WORDS, *claude.places_of_words(tree)}
    with world.store.read() as tx:
        spent = usage.of_ticket(tx, ticket.id).usd
    return Errand(
        prompt=review_words.first(matter),
        again=review_words.again(matter),
        rules=f"{review_words.RULES}\n\n{stage.role.prompt}".strip(),
        model=readers.model(world, ticket, stage),
        allowance=claude.allowance(world, ticket),
        spent=spent,
        tools=teams.tools(stage, ticket),
        provider=stage.role.provider,
        role=stage.role.name,
        team=teams.of_ticket(world, ticket).team,
        # A change must not bring rules for who reads it.
        obeys=not any(file.path in words for file in matter.files),
    )


def _matter(world: World, shop: Workshop, ticket: Ticket, reading: Reading, tree: Path) -> Matter:
    with world.store.read() as tx:
        seen = verdicts.said_by(tx, ticket.id, reading.reader)
        built, advice = runs.latest(tx, ticket.id), teams.advised(tx, ticket)
        ran = list(receipts.of_ticket(tx, ticket.id))
        ran += receipts.for_commit(tx, ticket.project, ticket.landed) if ticket.landed else ()
    change = Change(base=reading.base, commit=reading.commit)
    diff = shop.hub.diff(change.base, change.commit)
    # What is held out must not reach the builder by way of a finding.
    began = built.started_at if built is not None else 0.0
    fresh = {one.command: one for one in ran if one.made_at >= began and not one.held_out}
    commands = [check.command for check in shop.config.checks if check.command not in fresh]
    new = shop.hub.diff(seen[-1].commit, reading.commit) if seen else ""
    cut = review_words.cut_short(diff) or review_words.cut_short(new)
    return Matter(
        ticket=ticket,
        reading=reading,
        files=shop.hub.changed_files(change.base, change.commit),
        diff=diff,
        since=new,
        said=findings_of(seen),
        receipts=tuple(fresh.values()),
        to_run=[] if ticket.ended else commands,
        pointers=_pointers(shop, ticket, change),
        advice=advice,
        whole_diff=_beside(tree, diff) if cut else "",
    )


def _beside(tree: Path, diff: str) -> str:
    """The file with all of it; empty where the change itself stands in its place."""
    try:
        inside.write(tree, WHOLE_DIFF, diff.encode())
    except OSError:
        return ""
    return WHOLE_DIFF


def _pointers(shop: Workshop, ticket: Ticket, change: Change) -> list[str]:
    weak = [f"{one.path}: {permission.sentence(one)}" for one in permission.found_weak(shop, ticket, change)]
    guarded = [f"{path} is protected" for path in readers.touch(shop, ticket, change).protected]
    return [*weak, *guarded][:_MOST_POINTERS]
