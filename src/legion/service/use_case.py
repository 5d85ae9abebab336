"""The caller of a use case, and rows of operations that are one use case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from legion.domain.agents.agent import ROOT
from legion.jobs.context import Context

P = ParamSpec("P")
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The person, a standing agent, or the agent of a ticket. Only a token proves which."""

    id: str
    """`root` for the person, a standing agent's id, or ticket-12 for the agent of a ticket."""
    ticket: int | None = None
    run: int | None = None
    """The run that the token was issued for; None for the person."""
    only_tools: bool = False
    """The person's rights, through Legion's tools and nothing else."""

    @property
    def is_person(self) -> bool:
        return self.id == ROOT


PERSON = Caller(id=ROOT)


class Serving(Protocol):
    """What a use case needs of the service."""

    context: Context
    caller: Caller


def use_case(function: Callable[Concatenate[Context, P], Answer]) -> Callable[Concatenate[Any, P], Answer]:
    """A row that is one use case."""

    def performed(service: Serving, /, *given: P.args, **named: P.kwargs) -> Answer:
        return function(service.context, *given, **named)

    return performed


def by_caller(function: Callable[Concatenate[Context, str, P], Answer]) -> Callable[Concatenate[Any, P], Answer]:
    """A row whose use case needs the caller's id, because it acts in that name."""

    def performed(service: Serving, /, *given: P.args, **named: P.kwargs) -> Answer:
        return function(service.context, service.caller.id, *given, **named)

    return performed
