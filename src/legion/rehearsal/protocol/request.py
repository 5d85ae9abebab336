"""Parses a request into the conversation so far and its origin. Independent of scripts."""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from legion.rehearsal.protocol import openai
from legion.rehearsal.script.script import Unexpected

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)


class ApiPath(enum.Enum):
    """The API of a request; the value is its path."""

    MESSAGES = "/v1/messages"
    CHAT = "/v1/chat/completions"
    RESPONSES = "/v1/responses"


_NAMES = {ApiPath.MESSAGES: "Messages", ApiPath.CHAT: "Chat Completions", ApiPath.RESPONSES: "Responses"}


class Speaker(enum.Enum):
    """The side that wrote a message."""

    MODEL = "model"
    OTHERS = "others"


@dataclass(frozen=True, kw_only=True)
class Turn:
    """Consecutive messages of one side."""

    side: Speaker
    text: str = ""
    """The text, without what the agent program wraps around it."""
    results: str = ""
    """Results of tools."""
    calls: int = 0


@dataclass(frozen=True, kw_only=True)
class IncomingRequest:
    conversation: str
    """The agent program's id of the conversation; empty for other callers."""
    agent: str
    """Id of a subagent; empty for the main agent."""
    model: str
    stream: bool
    tools: bool
    dialect: ApiPath
    size: int
    system: str
    surroundings: str
    """All texts, with what the agent program added, such as the working directory."""
    turns: tuple[Turn, ...]

    @property
    def is_side_job(self) -> bool:
        """Whether the request is outside the conversation, for a title or the like: it then offers no tools."""
        return (bool(self.conversation) or self.dialect is not ApiPath.MESSAGES) and not self.tools


def read(headers: Mapping[str, str], body: bytes, dialect: ApiPath = ApiPath.MESSAGES) -> IncomingRequest:
    try:
        facts = json.loads(body)
        named = facts.get("prompt_cache_key") or ""
        match dialect:
            case ApiPath.CHAT:
                facts = openai.chat_facts(facts)
            case ApiPath.RESPONSES:
                facts = openai.responses_facts(facts)
            case ApiPath.MESSAGES:
                pass
        model, messages = facts["model"], facts["messages"]
        turns = _turns(messages)
        system = "\n".join(_texts(facts.get("system") or []))
        surroundings = "\n".join(text for entry in messages for text in _texts(entry["content"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unexpected(f"The request is not one of the {_NAMES[dialect]} API ({error}).") from error
    return IncomingRequest(
        conversation=headers.get("x-claude-code-session-id") or str(named),
        agent=headers.get("x-claude-code-agent-id", ""),
        model=str(model),
        stream=facts.get("stream") is True,
        tools=bool(facts.get("tools")),
        dialect=dialect,
        size=len(body),
        system=system,
        surroundings=surroundings,
        turns=turns,
    )


def _turns(messages: list[Mapping[str, Any]]) -> tuple[Turn, ...]:
    turns: list[Turn] = []
    for entry in messages:
        turn = _turn(entry)
        if turns and turns[-1].side is turn.side:
            turn = _joined(turns.pop(), turn)
        turns.append(turn)
    return tuple(turns)


def _turn(entry: Mapping[str, Any]) -> Turn:
    content = entry["content"]
    blocks = [] if isinstance(content, str) else content
    results = (block.get("content") or "" for block in blocks if block["type"] == "tool_result")
    return Turn(
        side=Speaker.MODEL if entry["role"] == "assistant" else Speaker.OTHERS,
        text=_plain("\n".join(_texts(content))),
        results=_plain("\n".join(text for result in results for text in _texts(result))),
        calls=sum(block["type"] == "tool_use" for block in blocks),
    )


def _joined(first: Turn, second: Turn) -> Turn:
    return Turn(
        side=first.side,
        text=f"{first.text}\n{second.text}".strip(),
        results=f"{first.results}\n{second.results}".strip(),
        calls=first.calls + second.calls,
    )


def _texts(content: str | list[Mapping[str, Any]]) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in content if block["type"] == "text"]


def _plain(text: str) -> str:
    return _REMINDER.sub("", text).strip()
