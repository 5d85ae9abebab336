"""Starts races and shows them: several attempts of one ticket at once, each a ticket of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from legion.config.files.project import ProjectConfig, parse
from legion.domain.agents.agent import STANDING
from legion.domain.errors import BadInput, NotFound, StateConflict
from legion.domain.rules import Rule
from legion.domain.scheduling.races import LaneChoice, choices, share, standing
from legion.domain.tickets.ticket import Retry, State, Ticket
from legion.jobs.agent.spec import NoProgram, choose_program
from legion.jobs.board import Board
from legion.jobs.supervise.usage import catch_up
from legion.service.tickets.actions import get_ticket
from legion.service.tickets.new_tickets import missing_programs
from legion.store.board import plan_approvals, projects, races, tickets
from legion.store.board.races import Lane
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.staff import ticket_holders
from legion.store.work import usage
from legion.system import crash
from legion.system.crash import Point
from legion.wire.dispatch import NewTicket
from legion.wire.tickets import LaneLine, NewRace, RacePage


def race(context: Board, ticket_id: int, wanted: NewRace) -> RacePage:
    """The ticket becomes the first lane, and copies of it the others, in one transaction."""
    lanes = choices(wanted.count, wanted.drivers, wanted.models)
    with context.store.read() as tx:
        ticket = get_ticket(tx, ticket_id)
        config = parse(projects.get(tx, ticket.project).config_text, origin="legion.toml")
    for lane in lanes:
        _refuse_unfit(context, config, ticket, lane)
    used = [NewTicket(title="", driver=lane.driver or ticket.spec.driver, on=list(ticket.spec.on)) for lane in lanes]
    notes = missing_programs(context, config, used)
    crash.reach(Point.RACE_BEFORE_START)
    with context.store.write() as tx:
        ticket = get_ticket(tx, ticket_id)
        _refuse_started(tx, ticket)
        if ticket.ended:
            ticket = tickets.move(tx, ticket_id, Retry(), rule=Rule.PERSON)
        numbers = _create(tx, ticket, lanes, combine=wanted.combine)
        labels = [lane.label for lane in lanes]
        races.create(tx, ticket.project, list(zip(numbers, labels, strict=True)), combine=wanted.combine)
    crash.reach(Point.RACE_AFTER_START)
    return replace(page(context, ticket_id), notes=notes)


def page(context: Board, ticket_id: int) -> RacePage:
    catch_up(context)
    with context.store.read() as tx:
        get_ticket(tx, ticket_id)
        lanes = races.of_ticket(tx, ticket_id)
        if not lanes:
            raise NotFound(f"Ticket {ticket_id} is in no race: `legion retry race {ticket_id} N=3` starts one.")
        origin = tickets.get(tx, lanes[0].origin)
        lines = [_line(tx, lane) for lane in lanes]
    return RacePage(
        race=lanes[0].race,
        origin=origin.id,
        title=origin.spec.title,
        winner=next((lane.ticket for lane in lanes if lane.won), None),
        usd=sum(line.usd for line in lines),
        lanes=lines,
    )


def _line(tx: ReadTransaction, lane: Lane) -> LaneLine:
    ticket = tickets.get(tx, lane.ticket)
    decided = {True: "won", False: "lost", None: standing(ticket.state, ticket.parked).value}
    return LaneLine(
        ticket=lane.ticket,
        driver=ticket.spec.driver,
        model=ticket.spec.model,
        state=ticket.state.value,
        standing=decided[lane.won],
        attempts=ticket.attempt,
        lines=lane.lines,
        usd=usage.of_ticket(tx, lane.ticket).usd,
        budget=ticket.spec.budget,
        why=lane.why or ticket.reason,
    )


def _create(tx: Transaction, ticket: Ticket, lanes: Sequence[LaneChoice], *, combine: bool) -> list[int]:
    """The tickets of the lanes; the first is the ticket itself."""
    budget = share(ticket.spec.budget, len(lanes) + combine)
    first, *others = lanes
    driver, model = first.driver or ticket.spec.driver, first.model or ticket.spec.model
    tickets.change_program(tx, ticket.id, driver=driver, model=model, budget=budget)
    made = [ticket.id]
    for lane in others:
        spec = replace(
            ticket.spec,
            driver=lane.driver or ticket.spec.driver,
            model=lane.model or ticket.spec.model,
            budget=budget,
            climbs=False,
        )
        made.append(tickets.create(tx, ticket.project, spec).id)
    return made


def _refuse_started(tx: ReadTransaction, ticket: Ticket) -> None:
    """Raise StateConflict where the ticket cannot become a lane."""
    if races.of_ticket(tx, ticket.id):
        raise StateConflict(f"Ticket {ticket.id} is in a race already; see `legion retry race {ticket.id}`.")
    if ticket.spec.checkpoint or ticket.spec.undoes is not None or ticket.spec.driver == STANDING:
        raise StateConflict(f"Ticket {ticket.id} has no agent of its own, so it cannot be raced.")
    if ticket_holders.of_ticket(tx, ticket.id) is not None:
        raise StateConflict(f"A standing agent holds ticket {ticket.id}, so it cannot be raced.")
    if plan_approvals.of_ticket(tx, ticket.id) is not None:
        raise StateConflict(f"Ticket {ticket.id} needs an approved plan first; dispatch it without --plan-first.")
    waits = ticket.state is State.QUEUED and not ticket.attempt
    if not waits and ticket.state not in (State.STOPPED, State.FAILED):
        raise StateConflict(f"Ticket {ticket.id} is {ticket.state.value}: run `legion stop {ticket.id}` first.")


def _refuse_unfit(context: Board, config: ProjectConfig, ticket: Ticket, lane: LaneChoice) -> None:
    """Raise BadInput for a program that does not exist, or cannot keep what the ticket promises."""
    if ticket.spec.command:
        raise BadInput(f"Ticket {ticket.id} is done by a command of its own; race tickets of agent programs.")
    try:
        chosen = choose_program(context, config, "", lane.driver or ticket.spec.driver)
    except NoProgram as missing:
        raise BadInput(missing.message) from missing
    can = chosen.capabilities
    if lane.model and not can.models:
        raise BadInput(f"{chosen.driver.title} takes no model; leave --models out.")
    if ticket.spec.budget is not None and not can.budgets:
        raise BadInput(f"{chosen.driver.title} keeps no budget, and ticket {ticket.id} has one; choose another driver.")
    if ticket.spec.asks and not can.asks:
        raise BadInput(f"{chosen.driver.title} cannot ask, and ticket {ticket.id} may; choose another driver.")
