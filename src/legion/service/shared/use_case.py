"""Makes a row of the service out of a use case: a function that takes the context, and maybe the caller's id, first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from legion.jobs.context import Context

P = ParamSpec("P")
Answer = TypeVar("Answer")


def use_case(function: Callable[Concatenate[Context, P], Answer]) -> Callable[Concatenate[Any, P], Answer]:
    """A row that is one use case."""

    def performed(service: Any, /, *given: P.args, **named: P.kwargs) -> Answer:  # noqa: ANN401 - the Service
        return function(service.context, *given, **named)

    return performed


def by_caller(function: Callable[Concatenate[Context, str, P], Answer]) -> Callable[Concatenate[Any, P], Answer]:
    """A row whose use case needs the caller's id, because it acts in that name."""

    def performed(service: Any, /, *given: P.args, **named: P.kwargs) -> Answer:  # noqa: ANN401 - the Service
        return function(service.context, service.caller.id, *given, **named)

    return performed
