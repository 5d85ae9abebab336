"""Stops every agent of every project at once, and resumes exactly what was stopped."""

from __future__ import annotations

from dataclasses import replace

from legion.domain.agents.agent import ROOT
from legion.domain.agents.mail import MessageKind
from legion.domain.events import EventKind
from legion.domain.rules import Rule
from legion.domain.runs import Run
from legion.domain.text import count
from legion.domain.tickets.ticket import Park, ParkReason, State, Unpark
from legion.jobs.board import Board
from legion.runner import launch
from legion.runner.spec import RunnerError
from legion.service.tickets import lookup
from legion.store.board import projects, tickets
from legion.store.staff import agents, mail
from legion.store.work import runs
from legion.wire.tickets import Acted

_FROZEN = "frozen: `legion resume --all` resumes it"
_THAWED = "The person stopped all work for a while and has resumed it. Continue where you were."
_AT_WORK = (State.WORKING, State.REVIEWING)


def freeze(context: Board) -> Acted:
    """Pause every project and stop every agent at work. All work is kept, and no attempt is counted. Checks, landings
    and planners that have started end by themselves.
    """
    active: list[Run] = []
    frozen: list[int] = []
    with context.store.write() as tx:
        for project in projects.all(tx):
            if not project.paused:
                projects.save(tx, replace(project, paused=True, frozen=True), EventKind.PROJECT_PAUSED, {})
            landing = lookup.mid_landing(tx, project.id)
            for ticket in tickets.live(tx, project=project.id):
                if ticket.state in _AT_WORK and ticket.id not in landing:
                    tickets.move(tx, ticket.id, Park(ParkReason.PAUSED, _FROZEN))
                    active += runs.active_of(tx, ticket.id)
                    frozen.append(ticket.id)
        turns = [run for run in runs.active(tx) if run.agent is not None]
        working = {run.agent for run in turns}
        for agent in agents.standing(tx):
            if agent.number in working:
                mail.send(
                    tx, sender=ROOT, recipient=agent.id, kind=MessageKind.NOTICE, text=_THAWED, project=agent.project
                )
    lookup.end_runs(context, active)
    _interrupt(context, turns)
    many = count(len(frozen), "ticket")
    return Acted(
        tickets=frozen, message=f"Everything is frozen: {many} stopped. `legion resume --all` resumes all of it."
    )


def _interrupt(context: Board, turns: list[Run]) -> None:
    """A message that waits for the end of the freeze makes each of these agents continue."""
    for run in turns:
        try:
            launch.stop(context.data.runs / run.name, grace=1.0)
        except RunnerError:
            continue


def thaw(context: Board) -> Acted:
    """Resume exactly what the freeze stopped. A project that was paused before stays paused."""
    woken: list[int] = []
    with context.store.write() as tx:
        for project in projects.all(tx):
            if project.frozen:
                projects.save(tx, replace(project, paused=False, frozen=False), EventKind.PROJECT_RESUMED, {})
            for ticket in tickets.live(tx, project=project.id):
                if ticket.parked is not None and ticket.parked.detail == _FROZEN:
                    tickets.move(tx, ticket.id, Unpark(), rule=Rule.PERSON)
                    woken.append(ticket.id)
    many = count(len(woken), "ticket resumes", "tickets resume")
    return Acted(tickets=woken, message=f"Everything is thawed: {many}.")
