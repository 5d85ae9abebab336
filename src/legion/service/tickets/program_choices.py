"""Chooses program and model of new tickets that name neither, from what landed before: `models.learn`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from legion.config.files.project import ProjectConfig
from legion.domain.events import EventKind
from legion.domain.scheduling.program_choice import ProgramChoice, best_program
from legion.jobs.agent.spec import NoProgram, choose_program
from legion.jobs.context import Context
from legion.store.database.transactions import Transaction
from legion.store.work import past_tickets
from legion.wire.dispatch import NewTicket


def choose_programs(
    context: Context, config: ProjectConfig, project: int, new: list[NewTicket], *, by_a_person: bool
) -> tuple[list[NewTicket], dict[int, ProgramChoice]]:
    """The tickets, and by position what was chosen for them."""
    open_ones = [n for n, one in enumerate(new) if not (one.checkpoint or one.command or one.driver or one.model)]
    if not by_a_person or not context.user.models.learn or not open_ones:
        return new, {}
    with context.store.read() as tx:
        past = past_tickets.of_project(tx, project)
    usable = {one.driver for one in past if _starts(context, config, one.driver)}
    found = {n: best_program(new[n].labels, new[n].files, past, usable) for n in open_ones}
    chosen = {n: one for n, one in found.items() if one is not None}
    for n, one in chosen.items():
        new = [*new[:n], replace(new[n], driver=one.driver, model=one.model), *new[n + 1 :]]
    return new, chosen


def record_choices(tx: Transaction, project: int, chosen: Mapping[int, ProgramChoice]) -> list[str]:
    """Record the choices by ticket. Returns a sentence for each."""
    for ticket, one in chosen.items():
        facts = {"driver": one.driver, "model": one.model, "why": one.why}
        tx.record(EventKind.TICKET_PROGRAM_CHOSEN, project=project, ticket=ticket, data=facts)
    return [f"Ticket {ticket} goes to {one}." for ticket, one in chosen.items()]


def _starts(context: Context, config: ProjectConfig, driver: str) -> bool:
    try:
        choose_program(context, config, "", driver)
    except NoProgram:
        return False
    return True
