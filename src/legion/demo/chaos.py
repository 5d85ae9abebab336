"""kill -9 at random: runners, Claude Code, the daemon, the gateway. A seed says in which order and how far apart.

Trouble with the model is not made here: the rehearsal plays that by the same seed.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from legion.client.discovery import read_record
from legion.client.legion import Legion
from legion.demo.scratch import Scratch, agent_of, runner_of
from legion.gateway import lifecycle as gateway
from legion.wire.tickets import TicketLine

_APART = (0.5, 2.5)
"""Seconds between two of them, from and to."""
_LEAST = 4


class Victim(Enum):
    RUNNER = "the runner"
    """And with it the agent: the attempt goes on where it was."""
    CLAUDE = "Claude Code"
    """That is a failed attempt; the next one goes on in the same conversation."""
    DAEMON = "the daemon"
    GATEWAY = "the gateway"


@dataclass(frozen=True, kw_only=True)
class Blow:
    victim: Victim
    pid: int
    ticket: int | None = None

    @property
    def words(self) -> str:
        return f"kill -9 {self.pid}: {self.victim.value} dies"


class KillChaos:
    def __init__(self, scratch: Scratch, seed: int, tickets: int) -> None:
        self._scratch = scratch
        self._dice = random.Random(seed)
        self._left = self._drawn(max(_LEAST, tickets))
        self._due: float | None = None
        self._crashed: set[int] = set()
        """Tickets that have lost an attempt to us; a second one might cost them their last."""

    def strike(self, legion: Legion, tickets: Sequence[TicketLine], now: float) -> Blow | None:
        """Kill who is next, where it is time and they are there. Nothing dies before an agent is at work."""
        working = [ticket for ticket in tickets if ticket.state == "working"]
        if not working or not self._left:
            return None
        if self._due is None:
            self._due = now + self._dice.uniform(*_APART)
        if now < self._due:
            return None
        blow = next(self._possible(self._left[-1], legion, working), None)
        if blow is None:
            return None
        self._left.pop()
        self._due = now + self._dice.uniform(*_APART)
        if blow.victim is Victim.CLAUDE and blow.ticket is not None:
            self._crashed.add(blow.ticket)
        with suppress(ProcessLookupError):
            os.kill(blow.pid, signal.SIGKILL)
        return blow

    def _drawn(self, number: int) -> list[Victim]:
        """Each kind at least once."""
        victims = [*Victim, *self._dice.choices(list(Victim), k=number - _LEAST)]
        self._dice.shuffle(victims)
        return victims

    def _possible(self, victim: Victim, legion: Legion, working: list[TicketLine]) -> Iterator[Blow]:
        match victim:
            case Victim.DAEMON:
                record = read_record(self._scratch.data)
                if record is not None:
                    yield Blow(victim=victim, pid=record.pid)
            case Victim.GATEWAY:
                address = gateway.address(self._scratch.gateway)
                if address is not None:
                    yield Blow(victim=victim, pid=address.pid)
            case Victim.RUNNER | Victim.CLAUDE:
                yield from self._at_work(victim, legion, working)

    def _at_work(self, victim: Victim, legion: Legion, working: list[TicketLine]) -> Iterator[Blow]:
        of_run = agent_of if victim is Victim.CLAUDE else runner_of
        for ticket in self._dice.sample(working, len(working)):
            if victim is Victim.CLAUDE and (ticket.id in self._crashed or ticket.attempt >= ticket.max_attempts):
                continue
            runs = legion.ticket(ticket.id).runs
            if runs and runs[-1].ended_at is None:
                pid = of_run(self._scratch, ticket.id, runs[-1].id)
                if pid is not None:
                    yield Blow(victim=victim, pid=pid, ticket=ticket.id)
