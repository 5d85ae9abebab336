"""The briefing: everything an agent is told about its ticket, in one self-contained text."""

from __future__ import annotations

from legion.config.project import ProjectConfig
from legion.domain.tickets import Ticket


def briefing(ticket: Ticket, config: ProjectConfig) -> str:
    wish = ticket.wish
    parts = [f"# Ticket {ticket.id}: {wish.title}", wish.text]
    parts += _section("What went wrong last time", ticket.feedback)
    parts += _section("Context", wish.context)
    parts += _section("It is right when", wish.criteria)
    parts += _section("Plan", wish.plan)
    parts += _section("Files it is about", "\n".join(f"- {glob}" for glob in wish.files))
    parts += _section("What is run on your change before it lands", _commands(ticket, config))
    parts += _section("How to work here", _RULES)
    if ticket.attempt > 1:
        parts.append(f"This is attempt {ticket.attempt}; what you did before is still in the tree.")
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


_RULES = """\
- The current folder is yours alone: a git repository with the code as it has landed so far.
- Whatever you leave in it is your change, committed or not. Nothing outside it is kept.
- Do only what the ticket asks. An empty change counts as not done.
- Your word that it works is not enough: the commands above are run on the result."""


def _section(title: str, text: str) -> list[str]:
    return [f"## {title}\n{text}"] if text.strip() else []


def _commands(ticket: Ticket, config: ProjectConfig) -> str:
    commands = [check.command for check in config.checks] + list(ticket.wish.proofs)
    return "\n".join(f"- `{command}`" for command in commands)
