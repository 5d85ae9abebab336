"""[claude] in the person's file: which Claude Code is started, how it reaches a model, and what it may do."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from legion.config.base.settings import choice, number, text, texts, whole
from legion.domain.tickets.spec import MOST_BUDGET


class Permissions(Enum):
    """Claude Code's own names for what it may do without asking."""

    DEFAULT = "default"
    ACCEPT_EDITS = "acceptEdits"
    DONT_ASK = "dontAsk"
    BYPASS = "bypassPermissions"


class Answers(Enum):
    """Who may answer the questions of standing agents."""

    PERSON = "person"
    LEADERS = "leaders"


def _tool_fault(name: str) -> str | None:
    return None if name.strip() and "\n" not in name else "is no name of a tool"


def _model_fault(name: str) -> str | None:
    return None if re.fullmatch(r"[!-~]+", name) else "is no name of a model"


@dataclass(frozen=True, kw_only=True)
class ClaudeSettings:
    program: str = text(
        "",
        allowed="the path of a program, or empty",
        help="The Claude Code to start. Empty: yours where it is new enough, else the one that comes with Legion.",
    )
    provider: str = text(
        "",
        allowed="the name of one of your providers, or empty",
        help="Which of your providers serves it (`legion provider list`). Empty: the only one.",
    )
    model: str = text(
        "",
        allowed="the name of a model, or empty",
        help="The model for tickets that name none. Empty: Claude Code's own choice.",
    )
    fallback_model: str = text(
        "", allowed="the name of a model, or empty", help="The model to use while the first is overloaded."
    )
    models: tuple[str, ...] = texts(
        allowed='a list of models, such as "claude-haiku-*"',
        fault=_model_fault,
        help="Models that it may request, besides those of its ticket and these settings. Empty: any.",
    )
    permission_mode: Permissions = choice(
        Permissions.ACCEPT_EDITS, help="What it may do without asking, beyond the tools that `allow` names."
    )
    allow: tuple[str, ...] = texts(
        allowed='a list of tools, such as "Bash(make *)"',
        fault=_tool_fault,
        help="Tools that it uses without asking. Inside a working sandbox, Bash and the web are allowed anyway.",
    )
    tools: tuple[str, ...] = texts(
        allowed="a list of tools", fault=_tool_fault, help="The only tools that it has. Empty: all of its own."
    )
    max_turns: int = whole(0, 0, 100_000, help="Turns of one run. 0: no limit.")
    budget_usd: float = number(
        0.0, 0, MOST_BUDGET, unit="dollars", help="The budget of a ticket that has none of its own. 0: no limit."
    )
    answers: Answers = choice(
        Answers.PERSON,
        help='Who answers questions of agents. "leaders": also agents above; permissions and budgets stay yours.',
    )
    answer_within: float = number(
        3600.0, 1, 7 * 86400, unit="seconds", help="How long a question to you waits before it counts as a no."
    )
