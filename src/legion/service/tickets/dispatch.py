"""Tickets are dispatched, stopped, retried, paused, dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from legion.config.files.project import ProjectConfig, parse
from legion.config.sections.claude import MOST_BUDGET
from legion.domain.agents.agent import STANDING
from legion.domain.agents.teams import Crew, RolePart
from legion.domain.errors import BadInput, Retryable, StateConflict
from legion.domain.projects import Project
from legion.domain.review.path_patterns import glob_fault
from legion.domain.rules import Rule
from legion.domain.runs import Run, seated
from legion.domain.scheduling.decide import JobKind
from legion.domain.tickets import board
from legion.domain.tickets.evidence import bind, check_named
from legion.domain.tickets.spec import ReviewPolicy, TicketSpec
from legion.domain.tickets.ticket import ENDED, Park, ParkReason, Retry, State, Stop, Ticket, Unpark
from legion.drivers import registry
from legion.drivers.profile import Capabilities
from legion.jobs.agent import plan_approval
from legion.jobs.agent.spec import NoProgram, agent
from legion.jobs.context import Context, ProjectContext
from legion.jobs.landing import upstream
from legion.jobs.run.job import run_dir
from legion.runner import launch
from legion.service.projects import registry as project_cases
from legion.service.projects import trust
from legion.service.tickets import crews
from legion.store.board import crews as stored_crews
from legion.store.board import landings, plan_approvals, projects, tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import idempotency, runs
from legion.wire.tickets import Acted, Dispatch, Dispatched, NewTicket

_LONGEST_TITLE = 300
_STOP_GRACE = 1.0


@dataclass(frozen=True, kw_only=True)
class Dispatcher:
    """The agent that dispatches, where it is no person, and what it passes on."""

    id: str
    tools: frozenset[str] | None
    allow: Callable[[ReadTransaction, float], None]
    """Raises NotAllowed where it cannot pay so much; asked in the transaction that takes it."""
    narrow: Callable[[Crew, Crew | None], Crew]
    """The crew with no more than it may give; the second is the project's own, where it named another.

    Raises NotAllowed where it named one that it may not."""


def dispatch(context: Context, request: Dispatch, by: Dispatcher | None = None) -> Dispatched:
    """All of them or none."""
    project = project_cases.find(context, request.cwd)
    if not request.tickets:
        raise BadInput("There is no ticket in this request: give at least one.")
    project_context = context.workshop_of(project)
    upstream.look(context, project_context)
    config = parse(project.config_text, origin="legion.toml")
    keys = _keys(request.tickets)
    _refuse_circles(request.tickets, keys)
    teams = [_team(context, project_context, new, by) for new in request.tickets]
    fitted = [
        crews.fitted(context, new, crew, by_a_person=by is None)
        for new, crew in zip(request.tickets, teams, strict=True)
    ]
    request = replace(request, tickets=fitted)
    for new in request.tickets:
        _refuse_unfit(context, config, Path(project.root), new)
    untrusted = crews.notes(context, project_context, teams)
    with context.store.write() as tx:
        if request.request and (first := idempotency.recall(tx, project.id, request.request)) is not None:
            return Dispatched(**first)
        board.refuse_unknown(
            {number for new in request.tickets for number in new.after}, tickets.states_of(tx, _mentioned(request))
        )
        _refuse_foreign(tx, project, request)
        if by is not None:
            by.allow(tx, sum(new.budget or 0.0 for new in request.tickets))
        kept = ["" if crew is None else stored_crews.keep(tx, crew) for crew in teams]
        ids = _create(context, tx, project, config, request.tickets, kept, by)
        answer = Dispatched(
            ids=[ids[position] for position in range(len(request.tickets))],
            keys={key: ids[position] for key, position in keys.items()},
            notes=[*_notes(context, tx, project), *untrusted],
        )
        if request.request:
            idempotency.remember(tx, project.id, request.request, asdict(answer))
    return answer


def _team(context: Context, project_context: ProjectContext, new: NewTicket, by: Dispatcher | None) -> Crew | None:
    crew = crews.chosen(context, project_context, new)
    if by is None or crew is None:
        return crew
    return by.narrow(crew, crews.usual(context, project_context) if new.team else None)


def stop(context: Context, ticket_id: int) -> Acted:
    with context.store.write() as tx:
        ticket = in_our_care(tx, ticket_id)
        refuse_mid_landing(tx, ticket)
        tickets.move(tx, ticket_id, Stop())
        active = active_runs(tx, ticket_id)
    end_runs(context, active)
    return Acted(
        tickets=[ticket_id], message=f"Ticket {ticket_id} is stopped; `legion retry {ticket_id}` takes it up again."
    )


def stop_all(context: Context, cwd: str) -> Acted:
    project = project_cases.find(context, cwd)
    active: list[Run] = []
    stopped: list[int] = []
    with context.store.write() as tx:
        landing = _mid_landing(tx, project.id)
        for ticket in tickets.live(tx, project=project.id):
            if ticket.id not in landing:
                tickets.move(tx, ticket.id, Stop())
                active += active_runs(tx, ticket.id)
                stopped.append(ticket.id)
    end_runs(context, active)
    return Acted(tickets=stopped, message=_said_of_all(stopped, sorted(landing)))


def _said_of_all(stopped: list[int], landing: list[int]) -> str:
    count = "1 ticket is" if len(stopped) == 1 else f"{len(stopped)} tickets are"
    said = [f"{count} stopped."] if stopped else []
    if landing:
        which = f"Ticket {landing[0]} was" if len(landing) == 1 else f"Tickets {', '.join(map(str, landing))} were"
        said.append(
            f"{which} not stopped: what reaches the target at this moment lands; `legion undo N` takes it back."
        )
    return " ".join(said) or "Nothing was in hand."


def retry(context: Context, ticket_id: int, feedback: str) -> Acted:
    with context.store.write() as tx:
        in_our_care(tx, ticket_id)
        tickets.move(tx, ticket_id, Retry(feedback))
    return Acted(tickets=[ticket_id], message=f"Ticket {ticket_id} is queued again.")


def drop(context: Context, ticket_id: int) -> Acted:
    """Off the board. What its agent left goes to the trash whole; what landed stays landed."""
    with context.store.write() as tx:
        ticket = in_our_care(tx, ticket_id)
        if ticket.state not in (*ENDED, State.DRAFT, State.QUEUED, State.PARKED):
            raise StateConflict(f"Ticket {ticket_id} is {ticket.state.value}: run `legion stop {ticket_id}` first.")
        if active_runs(tx, ticket_id):
            raise Retryable(f"The agent of ticket {ticket_id} is being stopped: try again in a moment.")
        waiting = tickets.dependants(tx, ticket_id)
        if waiting and ticket.state is not State.DONE:
            listed = ", ".join(str(other) for other in waiting)
            raise StateConflict(f"Others come after ticket {ticket_id} ({listed}): drop them first.")
        tickets.drop(tx, ticket_id)
    project_context = context.workshop(ticket.project)
    for name in project_context.worktrees.names():
        if (seated(name) or ("", 0))[:2] == ("ticket", ticket_id):
            project_context.worktrees.discard(name)
    return Acted(
        tickets=[ticket_id], message=f"Ticket {ticket_id} is off the board; its files lie in {project_context.trash}."
    )


def pause(context: Context, ticket_id: int) -> Acted:
    with context.store.write() as tx:
        ticket = in_our_care(tx, ticket_id)
        refuse_mid_landing(tx, ticket)
        tickets.move(tx, ticket_id, Park(ParkReason.PAUSED, "paused by a person"))
        active = active_runs(tx, ticket_id)
    end_runs(context, active)
    return Acted(
        tickets=[ticket_id], message=f"Ticket {ticket_id} is paused; `legion resume {ticket_id}` lets it go on."
    )


def resume(context: Context, ticket_id: int) -> Acted:
    with context.store.write() as tx:
        ticket = in_our_care(tx, ticket_id)
        if ticket.state is not State.PARKED:
            raise StateConflict(f"Ticket {ticket_id} is {ticket.state.value}, not paused: there is nothing to resume.")
        plan_approval.refuse_unapproved(tx, ticket)
        if ticket.parked is not None and ticket.parked.reason is ParkReason.RED_BASELINE:
            project = projects.get(tx, ticket.project)
            projects.save(tx, replace(project, baseline_commit=None, baseline_verdict=None))
        tickets.move(tx, ticket_id, Unpark(), rule=Rule.PERSON)
    return Acted(tickets=[ticket_id], message=f"Ticket {ticket_id} goes on.")


def _keys(new: list[NewTicket]) -> dict[str, int]:
    keys: dict[str, int] = {}
    for position, ticket in enumerate(new):
        if ticket.key:
            if ticket.key in keys:
                raise BadInput(f"Two tickets have the key {ticket.key!r}: give each its own.")
            keys[ticket.key] = position
    return keys


def _refuse_circles(new: list[NewTicket], keys: dict[str, int]) -> None:
    for ticket in new:
        unknown = [key for key in ticket.after_keys if key not in keys]
        if unknown:
            known = ", ".join(sorted(keys)) or "none"
            raise BadInput(
                f"Ticket {ticket.key or ticket.title!r} comes after {unknown[0]!r}, which is no key (known: {known})."
            )
    by_position = {position: [keys[key] for key in ticket.after_keys] for position, ticket in enumerate(new)}
    names = {position: ticket.key for position, ticket in enumerate(new)}
    board.refuse_cycles(by_position, names)


def _refuse_unfit(context: Context, config: ProjectConfig, root: Path, new: NewTicket) -> None:
    shown = new.key or " ".join(new.title.split())[:40] or "without a title"
    if not new.title.strip():
        raise BadInput("A ticket needs a title or a text: say what should be changed.")
    if len(new.title) > _LONGEST_TITLE:
        raise BadInput(
            f"The title {shown!r}... has {len(new.title)} characters: keep it under {_LONGEST_TITLE}, use the text."
        )
    if new.max_attempts is not None and not 1 <= new.max_attempts <= 20:
        raise BadInput(f"Ticket {shown!r} asks for {new.max_attempts} attempts: choose 1 to 20.")
    if new.budget is not None and not 0 < new.budget <= MOST_BUDGET:
        raise BadInput(
            f"Ticket {shown!r} has a budget of {new.budget:g} dollars: choose more than 0, at most {MOST_BUDGET:,}."
        )
    for glob in new.files:
        if fault := glob_fault(glob):
            raise BadInput(f"Ticket {shown!r}: the pattern {glob!r} {fault}.")
    if any(not command.strip() for command in new.prove):
        raise BadInput(f"Ticket {shown!r} has an empty proof: give a command or leave it out.")
    _refuse_unknown_checks(config, new, shown)
    _refuse_acceptance(context, root, new, shown)
    if new.review and new.review not in [policy.value for policy in ReviewPolicy]:
        known = ", ".join(policy.value for policy in ReviewPolicy)
        raise BadInput(f"Ticket {shown!r} asks for the review {new.review[:40]!r}: choose one of {known}.")
    if new.checkpoint:
        if new.command or new.driver or new.model or new.ask or new.plan_first or new.budget is not None:
            unfit = "command, driver, model, ask, plan_first and budget"
            raise BadInput(f"Ticket {shown!r} is a checkpoint, which has no agent: leave out {unfit}.")
        return
    try:
        chosen = agent(context, config, new.command, new.driver)
    except NoProgram as missing:
        raise BadInput(f"Ticket {shown!r}: {missing.message}") from missing
    _refuse_missing_capability(chosen.capabilities, new, shown)


def _refuse_unknown_checks(config: ProjectConfig, new: NewTicket, shown: str) -> None:
    """A criterion may be bound to a check of the project by its name."""
    known = [check.name for check in config.checks]
    for one in bind(new.criteria, new.prove)[1]:
        name = check_named(one.by)
        if name is not None and name not in known:
            there = ", ".join(known) or "none"
            raise BadInput(f"Ticket {shown!r}: legion.toml has no check {name!r} (there are: {there}).")


def _refuse_acceptance(context: Context, root: Path, new: NewTicket, shown: str) -> None:
    """Unknown names, and what agents could read: then it would not be held out."""
    known = context.user.acceptance
    for name in new.accept:
        if name not in known:
            there = ", ".join(known) or "none"
            raise BadInput(f"Ticket {shown!r}: your settings have no [acceptance.{name}] (there are: {there}).")
        folder = known[name].folder
        if folder is None:
            continue
        if not folder.is_dir():
            raise BadInput(f"Ticket {shown!r}: the folder {folder} of acceptance {name!r} is not there.")
        real = folder.resolve()
        opened = (
            root.resolve(),
            *(path.resolve() for path in (*context.user.sandbox.read, *context.user.sandbox.write)),
        )
        if any(place == real or place in real.parents for place in opened):
            raise BadInput(
                f"Ticket {shown!r}: agents can read the folder {folder} of acceptance {name!r}: move it elsewhere."
            )


def _refuse_missing_capability(can: Capabilities, new: NewTicket, shown: str) -> None:
    """An option that its driver cannot keep must not be taken for kept."""
    wanted: tuple[tuple[bool, str, str, Callable[[Capabilities], bool]], ...] = (
        (new.budget is not None, "--budget", "keep a budget", lambda one: one.budgets),
        (new.ask, "--ask", "talk", lambda one: one.asks),
        (new.plan_first, "--plan-first", "be limited to reading", lambda one: one.reads_only),
    )
    for given, option, what, capability in wanted:
        if given and not capability(can):
            others = " or ".join(f"--driver {name}" for name in registry.that_can(capability))
            raise BadInput(
                f"Ticket {shown!r}: {option} needs a driver that can {what}. Remove {option} or choose {others}."
            )


def _mentioned(request: Dispatch) -> list[int]:
    return sorted({number for new in request.tickets for number in new.after})


def _refuse_foreign(tx: Transaction, project: Project, request: Dispatch) -> None:
    for ticket in tickets.get_many(tx, _mentioned(request)):
        if ticket.project != project.id:
            raise BadInput(
                f"Ticket {ticket.id} belongs to another project: a ticket can come after tickets of its own only."
            )


def _climbs(context: Context, config: ProjectConfig, new: NewTicket) -> bool:
    """Whether it escalates to other models: where no number of attempts is given and the driver takes a model."""
    if new.max_attempts is not None or new.checkpoint or new.driver == STANDING:
        return False
    return agent(context, config, new.command, new.driver).capabilities.models


def _create(
    context: Context,
    tx: Transaction,
    project: Project,
    config: ProjectConfig,
    new: list[NewTicket],
    kept: list[str],
    by: Dispatcher | None,
) -> dict[int, int]:
    """In an order in which whatever a ticket comes after exists already; ids by position in the request."""
    keys = _keys(new)
    edges = {position: [keys[key] for key in ticket.after_keys] for position, ticket in enumerate(new)}
    ids: dict[int, int] = {}
    for position in board.topological(edges):
        ticket = new[position]
        after = [*ticket.after, *(ids[keys[key]] for key in ticket.after_keys)]
        proofs, bound = bind(ticket.criteria, ticket.prove)
        spec = TicketSpec(
            title=" ".join(ticket.title.split()),
            text=ticket.text,
            context=ticket.context,
            criteria=ticket.criteria,
            plan=ticket.plan,
            after=tuple(dict.fromkeys(after)),
            files=tuple(ticket.files),
            proofs=proofs,
            bound=bound,
            acceptance=tuple(dict.fromkeys(ticket.accept)),
            checkpoint=ticket.checkpoint,
            epic=ticket.epic,
            priority=ticket.priority,
            driver=ticket.driver,
            command=ticket.command,
            model=ticket.model,
            max_attempts=ticket.max_attempts or config.agents.attempts,
            # The ladder leads to models that an agent may not give.
            climbs=by is None and _climbs(context, config, ticket),
            asks=ticket.ask,
            budget=ticket.budget,
            review=ReviewPolicy(ticket.review) if ticket.review else None,
            dispatcher="" if by is None else by.id,
            tools=None if by is None or by.tools is None else tuple(sorted(by.tools)),
            team=ticket.team,
            crew=kept[position],
            labels=tuple(dict.fromkeys(ticket.labels)),
        )
        ids[position] = tickets.create(tx, project.id, spec).id
        if ticket.plan_first:
            plan_approvals.want(tx, ids[position])
    return ids


def _notes(context: Context, tx: Transaction, project: Project) -> list[str]:
    notes = []
    if not projects.is_trusted(tx, project.id, project.config_hash):
        notes.append("Nothing starts before you trust legion.toml: read it and run `legion trust`.")
    elif trust.stale(project):
        notes.append("legion.toml changed since you trusted it and is not in force: run `legion trust`.")
    if project.paused:
        notes.append("The project is paused: `legion resume` lets it go on.")
    if project.baseline_red:
        notes.append("The target itself fails its checks; no ticket will be blamed for that.")
    if not context.sandbox.works:
        notes.append(f"Agents run without a sandbox: {context.sandbox.why}")
    return notes


def in_our_care(tx: ReadTransaction, ticket_id: int) -> Ticket:
    """The ticket, unless its project is gone: then nothing can be done with it any more."""
    ticket = tickets.get(tx, ticket_id)
    project = projects.get(tx, ticket.project)
    if project.removed_at is not None:
        raise StateConflict(
            f"Ticket {ticket_id} belongs to {project.name}, which is no project any more: run `legion init`."
        )
    return ticket


def active_runs(tx: ReadTransaction, ticket_id: int) -> tuple[Run, ...]:
    """Of whoever works on it or reads it."""
    return runs.active_of(tx, ticket_id)


def end_runs(context: Context, active: Iterable[Run]) -> None:
    for run in active:
        context.rests.pop((JobKind.REVIEW if run.part is RolePart.READ else JobKind.RUN, run.ticket or 0), None)
        launch.stop(run_dir(context, run), grace=_STOP_GRACE)


def _mid_landing(tx: ReadTransaction, project: int) -> set[int]:
    return {number for intent in landings.open_ones(tx, project) for number in dict(intent.tickets)}


def refuse_mid_landing(tx: ReadTransaction, ticket: Ticket) -> None:
    if ticket.state is State.LANDING and ticket.id in _mid_landing(tx, ticket.project):
        raise Retryable(f"Ticket {ticket.id} is reaching the target at this moment: look again in a second.")
