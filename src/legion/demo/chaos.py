"""Kills processes at random with SIGKILL: runners, Claude Code, the daemon, the gateway. A seed fixes order and times.

Errors of the model come from the rehearsal, by the same seed.
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
from legion.gateway import lifecycle
from legion.wire.tickets import TicketLine

_APART = (0.5, 2.5)
"""Seconds between two kills, from and to."""
_MIN_KILLS = 4


class Victim(Enum):
    RUNNER = "the runner"
    """The agent dies with it; the attempt resumes."""
    CLAUDE = "Claude Code"
    """The attempt fails; the next one resumes the conversation."""
    DAEMON = "the daemon"
    GATEWAY = "the gateway"


@dataclass(frozen=True, kw_only=True)
class Kill:
    victim: Victim
    pid: int
    ticket: int | None = None

    @property
    def text(self) -> str:
        return f"kill -9 {self.pid}: {self.victim.value} dies"


class KillChaos:
    def __init__(self, scratch: Scratch, seed: int, tickets: int) -> None:
        self._scratch = scratch
        self._random = random.Random(seed)
        self._left = self._draw(max(_MIN_KILLS, tickets))
        self._due: float | None = None
        self._crashed: set[int] = set()
        """Tickets that have already lost an attempt to a kill; a second one might be their last."""

    def strike(self, legion: Legion, tickets: Sequence[TicketLine], now: float) -> Kill | None:
        """Kill the next victim, if it is time and the victim runs. Nothing is killed before an agent works."""
        working = [ticket for ticket in tickets if ticket.state == "working"]
        if not working or not self._left:
            return None
        if self._due is None:
            self._due = now + self._random.uniform(*_APART)
        if now < self._due:
            return None
        kill = next(self._possible(self._left[-1], legion, working), None)
        if kill is None:
            return None
        self._left.pop()
        self._due = now + self._random.uniform(*_APART)
        if kill.victim is Victim.CLAUDE and kill.ticket is not None:
            self._crashed.add(kill.ticket)
        with suppress(ProcessLookupError):
            os.kill(kill.pid, signal.SIGKILL)
        return kill

    def _draw(self, number: int) -> list[Victim]:
        """Random victims, each kind at least once."""
        victims = [*Victim, *self._random.choices(list(Victim), k=number - _MIN_KILLS)]
        self._random.shuffle(victims)
        return victims

    def _possible(self, victim: Victim, legion: Legion, working: list[TicketLine]) -> Iterator[Kill]:
        match victim:
            case Victim.DAEMON:
                record = read_record(self._scratch.data)
                if record is not None:
                    yield Kill(victim=victim, pid=record.pid)
            case Victim.GATEWAY:
                address = lifecycle.address(self._scratch.gateway)
                if address is not None:
                    yield Kill(victim=victim, pid=address.pid)
            case Victim.RUNNER | Victim.CLAUDE:
                yield from self._at_work(victim, legion, working)

    def _at_work(self, victim: Victim, legion: Legion, working: list[TicketLine]) -> Iterator[Kill]:
        of_run = agent_of if victim is Victim.CLAUDE else runner_of
        for ticket in self._random.sample(working, len(working)):
            if victim is Victim.CLAUDE and (ticket.id in self._crashed or ticket.attempt >= ticket.max_attempts):
                continue
            runs = legion.ticket(ticket.id).runs
            if runs and runs[-1].ended_at is None:
                pid = of_run(self._scratch, ticket.id, runs[-1].id)
                if pid is not None:
                    yield Kill(victim=victim, pid=pid, ticket=ticket.id)
