"""News for the person's conversations with Claude Code, added to their next turn, and the status line."""

from __future__ import annotations

import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from legion.cli.base.output import count, sanitize
from legion.client.discovery import find
from legion.client.legion import Legion
from legion.client.text.tickets import questions_wait
from legion.system.paths import DataDir
from legion.wire.agents import Seat
from legion.wire.board import Status
from legion.wire.errors import LegionError
from legion.wire.history import HistoryLine

_SESSION = re.compile(r"[A-Za-z0-9-]{8,64}")
_MOST_LINES = 12
_KEPT_DAYS = 30
_NEWS = {"done": "has landed", "failed": "failed"}


def given() -> dict[str, Any]:
    """What Claude Code sends on stdin; empty from a terminal."""
    if sys.stdin.isatty():
        return {}
    try:
        found = json.loads(sys.stdin.read() or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def hook_answer(data_dir: Path, facts: dict[str, Any]) -> str:
    """The JSON that a hook prints; empty where there is no news. It never starts a daemon and never fails."""
    event, session = str(facts.get("hook_event_name", "")), str(facts.get("session_id", ""))
    cwd = str(facts.get("cwd") or Path.cwd())
    if not _SESSION.fullmatch(session):
        return ""
    try:
        lines = _news(find(data_dir), DataDir(data_dir), session, cwd)
    except (LegionError, OSError):
        return ""
    if not lines:
        return ""
    text = "News of Legion in this project, for the person. Mention them in your answer:\n" + "\n".join(lines)
    return json.dumps({"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})


def _news(legion: Legion, data: DataDir, session: str, cwd: str) -> list[str]:
    """Since this conversation's last turn; a new conversation gets the number of questions that wait."""
    status = legion.status(cwd)
    if status.project is None:
        return []
    mark = data.plugin_sessions / f"{session}.json"
    seen = _seen(mark)
    _keep(mark, status.last_event)
    if seen is None:
        return _waiting(status)
    lines = legion.history(cwd, after=f"{seen}:0:0", last=500).lines
    found = [text for line in lines if (text := message_of_agent(line, status.seat) or _sentence(line))]
    more = [f"- and {len(found) - _MOST_LINES} more: `legion status events`"] if len(found) > _MOST_LINES else []
    return [*found[-_MOST_LINES:], *more]


def _waiting(status: Status) -> list[str]:
    if not status.questions:
        return []
    return [f"- {questions_wait(status, person='the person')}: /legion:inbox"]


def message_of_agent(line: HistoryLine, seat: Seat | None) -> str:
    """A standing agent's message to the person: its own words, so the line names their author."""
    if seat is None or line.kind != "mail.sent" or line.data.get("to") != seat.you:
        return ""
    sender = str(line.data.get("from"))
    name = next((agent.name for agent in seat.reports if agent.id == sender), sender[:8])
    return f"- Agent {_short(name)} writes: {_short(line.data.get('text'))}"


def _sentence(line: HistoryLine) -> str:
    if line.kind == "question.asked":
        return f"- Question {line.data.get('question')} waits for the person: {_short(line.data.get('words'))}"
    became = _NEWS.get(str(line.data.get("to"))) if line.kind == "ticket.moved" else None
    if became is None:
        return ""
    reason = f": {_short(line.data.get('reason'))}" if line.data.get("reason") else ""
    return f"- Ticket {line.ticket} {became}{reason}"


def _short(text: object) -> str:
    """An agent may have written it: on one line, so that it cannot look like more than one piece of news."""
    return sanitize(" ".join(str(text or "").split()))[:200]


def _seen(mark: Path) -> int | None:
    try:
        return int(json.loads(mark.read_text())["event"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def _keep(mark: Path, event: int) -> None:
    mark.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not mark.exists():
        _forget_old(mark.parent)
    mark.write_text(json.dumps({"event": event}))


def _forget_old(folder: Path) -> None:
    oldest = datetime.now(UTC).timestamp() - _KEPT_DAYS * 86_400
    for one in folder.glob("*.json"):
        if one.stat().st_mtime < oldest:
            one.unlink(missing_ok=True)


def line(data_dir: Path, facts: dict[str, Any]) -> str:
    """The status line: tickets, questions, money of today, limits, context. Empty in a folder that is no project."""
    place = facts.get("workspace") if isinstance(facts.get("workspace"), dict) else {}
    cwd = str((place or {}).get("current_dir") or facts.get("cwd") or Path.cwd())
    try:
        legion = find(data_dir)
        status = legion.status(cwd)
        if status.project is None:
            return ""
        spent = legion.usage(cwd, "day", datetime.now(UTC).date().isoformat()).total.usage.usd
        limits = [one.limit.utilization for one in legion.providers().providers if one.limit is not None]
    except (LegionError, OSError):
        return "legion: not running"
    working = sum(status.counts.get(state, 0) for state in ("working", "checking", "reviewing", "landing"))
    parts = [f"{working} working", f"{status.counts.get('queued', 0)} queued"]
    parts += [f"{status.counts['failed']} failed"] if status.counts.get("failed") else []
    parts += [count(status.questions, "question")] if status.questions else []
    parts += [f"${spent:.2f} today"] if spent else []
    most = max((share for share in limits if share is not None), default=0.0)
    parts += [f"limit {most:.0%}"] if most else []
    context = facts.get("context_window")
    used = context.get("used_percentage") if isinstance(context, dict) else None
    parts += [f"context {used:.0f}%"] if isinstance(used, int | float) else []
    return f"legion: {', '.join(parts)}"
