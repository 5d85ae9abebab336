"""Refuses new tickets that cannot work, before anything is stored: circles, limits, drivers, checks, acceptance."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path

from legion.config.files.project import ProjectConfig
from legion.domain.errors import BadInput
from legion.domain.tickets import board
from legion.domain.tickets.evidence import bind, check_named
from legion.drivers import registry
from legion.drivers.profile import ProgramUnusable
from legion.jobs.agent.spec import NoProgram, choose_program
from legion.jobs.board import Board
from legion.service.tickets import crews
from legion.wire.dispatch import TICKET_FIELDS, NewTicket
from legion.wire.ticket_fields import AgentNeed

_CAPABILITIES = {
    AgentNeed.BUDGETS: "keep a budget",
    AgentNeed.MODELS: "take a model",
    AgentNeed.ASKS: "ask a person",
    AgentNeed.READS_ONLY: "be limited to reading",
}
_ANY_AGENT = (AgentNeed.AGENT, *_CAPABILITIES)


def keys_of(new: list[NewTicket]) -> dict[str, int]:
    keys: dict[str, int] = {}
    for position, ticket in enumerate(new):
        if ticket.key:
            if ticket.key in keys:
                raise BadInput(f"Two tickets have the key {ticket.key!r}. Give each its own.")
            keys[ticket.key] = position
    return keys


def refuse_circles(new: list[NewTicket], keys: dict[str, int]) -> None:
    for ticket in new:
        unknown = [key for key in ticket.after_keys if key not in keys]
        if unknown:
            raise BadInput(
                f"Ticket {ticket.key or ticket.title!r} comes after {unknown[0]!r}, which is no key of this request."
            )
    by_position = {position: [keys[key] for key in ticket.after_keys] for position, ticket in enumerate(new)}
    names = {position: ticket.key for position, ticket in enumerate(new)}
    board.refuse_cycles(by_position, names)


def refuse_faults(new: NewTicket) -> None:
    """Raise BadInput for the first field whose value is not allowed."""
    shown = crews.shown_name(new)
    if not new.title.strip():
        raise BadInput("A ticket needs a title or a text. Describe the change.")
    for name, field in TICKET_FIELDS.items():
        if fault := field.fault(getattr(new, name)):
            raise BadInput(f"Ticket {shown!r}: {field.shown_name} {fault}.")
    if new.checkpoint and (unfit := _given(new, *_ANY_AGENT)):
        raise BadInput(f"Ticket {shown!r}: a checkpoint has no agent. Remove {unfit}.")


def refuse_unfit(context: Board, config: ProjectConfig, root: Path, new: NewTicket) -> None:
    """Raise BadInput for what the project, the settings or the agent's program cannot do."""
    shown = crews.shown_name(new)
    _refuse_unknown_checks(config, new, shown)
    _refuse_acceptance(context, root, new, shown)
    if new.checkpoint:
        return
    try:
        chosen = choose_program(context, config, new.command, new.driver)
    except NoProgram as missing:
        raise BadInput(f"Ticket {shown!r}: {missing.message}") from missing
    for need, what in _CAPABILITIES.items():
        option = _given(new, need)
        if option and not getattr(chosen.capabilities, need.value):
            others = " or ".join(f"--driver {name}" for name in registry.that_can(attrgetter(need.value)))
            raise BadInput(
                f"Ticket {shown!r}: {option} needs a driver that can {what}. Remove {option} or choose {others}."
            )


def missing_programs(context: Board, config: ProjectConfig, new: list[NewTicket]) -> list[str]:
    """A note for each program that is not here: its tickets wait for it. A machine that a ticket names may have it."""
    notes: list[str] = []
    for one in new:
        if not one.checkpoint and not one.on:
            try:
                choose_program(context, config, one.command, one.driver).driver.refuse_missing()
            except ProgramUnusable as missing:
                notes.append(str(missing))
    return list(dict.fromkeys(notes))


def _given(new: NewTicket, *needs: AgentNeed) -> str:
    """The first field that was given and needs such an agent, by its option; empty where there is none."""
    given = (field for name, field in TICKET_FIELDS.items() if getattr(new, name) != field.default)
    return next((field.shown_name for field in given if field.rule.needs in needs), "")


def _refuse_unknown_checks(config: ProjectConfig, new: NewTicket, shown: str) -> None:
    """Raise BadInput for a criterion that is bound to a check which the project does not have."""
    known = [check.name for check in config.checks]
    for one in bind(new.criteria, new.prove)[1]:
        name = check_named(one.by)
        if name is not None and name not in known:
            there = ", ".join(known) or "none"
            raise BadInput(f"Ticket {shown!r}: legion.toml has no check {name!r}. Known checks: {there}.")


def _refuse_acceptance(context: Board, root: Path, new: NewTicket, shown: str) -> None:
    """Raise BadInput for unknown acceptance, and for a folder that agents could read."""
    known = context.user.acceptance
    for name in new.accept:
        if name not in known:
            there = ", ".join(known) or "none"
            raise BadInput(f"Ticket {shown!r}: your settings have no [acceptance.{name}]. Known names: {there}.")
        folder = known[name].folder
        if folder is None:
            continue
        if not folder.is_dir():
            raise BadInput(f"Ticket {shown!r}: the folder {folder} of acceptance {name!r} does not exist. Create it.")
        real = folder.resolve()
        readable = (
            root.resolve(),
            *(path.resolve() for path in (*context.user.sandbox.read, *context.user.sandbox.write)),
        )
        if any(place == real or place in real.parents for place in readable):
            raise BadInput(
                f"Ticket {shown!r}: agents can read the folder {folder} of acceptance {name!r}. Move it elsewhere."
            )
