"""Answers whose shapes are compiled when the first of them is given.

Compiling those of every route took a tenth of a daemon's start, and as much again at its first request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, get_type_hints

from fastapi.routing import APIRoute
from pydantic import ConfigDict


class LateRoute(APIRoute):
    """A route whose answer is compiled late. Bodies are not: pydantic would warn of the names that they have here."""

    def __init__(self, path: str, endpoint: Callable[..., Any], **rest: Any) -> None:  # noqa: ANN401 - as it came
        answer = get_type_hints(endpoint).get("return")
        if isinstance(answer, type) and is_dataclass(answer):
            compile_late(answer)
        super().__init__(path, endpoint, **rest)


def compile_late(shape: type) -> None:
    """Shapes know nothing of pydantic, so it is told here."""
    setattr(shape, "__pydantic_config__", ConfigDict(defer_build=True))  # noqa: B010
