"""Claude Code's transcripts: `projects/FOLDER/ID.jsonl`, and those of subagents below `ID/subagents/`.

An answer is written as one line per block, each with the usage of the complete answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from legion.conversations.conversation import ConversationEntry, ConversationFacts, ConversationProgram, EntryRole
from legion.conversations.formats.lines import Line, LineFormat, call_text, number, seconds, text_of

_SUBAGENTS = "subagents"
_NOT_TYPED = ("<command-", "<local-command-", "<system-reminder>", "<task-notification>", "Caveat:", "[Request interr")
"""Starts of messages of the person that the program wrote itself."""


def _begin(path: Path) -> ConversationFacts:
    parent = path.parent.parent.name if path.parent.name == _SUBAGENTS else ""
    return ConversationFacts(program=ConversationProgram.CLAUDE, id=path.stem, parent=parent)


def _take(line: Line, facts: ConversationFacts) -> Iterator[ConversationEntry]:
    kind = line.get("type")
    match kind:
        case "user" | "assistant":
            pass
        case "summary":
            facts.note_title(facts.title or line.get("summary"))
            return
        case "ai-title":
            facts.note_title(line.get("aiTitle"))
            return
        case "custom-title":
            facts.note_title(line.get("customTitle"))
            return
        case "cost-state":
            cost = line.get("totalCostUSD")
            facts.usd = max(facts.usd, float(cost)) if isinstance(cost, int | float) else facts.usd
            return
        case _:
            return
    at = seconds(line.get("timestamp"))
    facts.note_time(at)
    facts.folder = facts.folder or str(line.get("cwd") or "")
    facts.branch = str(line.get("gitBranch") or facts.branch)
    message = line["message"]
    if kind == "assistant":
        yield from _answer(message, at, facts)
    else:
        yield from _prompt(line, message, at, facts)


def _prompt(line: Line, message: Line, at: float, facts: ConversationFacts) -> Iterator[ConversationEntry]:
    content = message["content"]
    if isinstance(content, list):
        for block in content:
            if block.get("type") == "tool_result" and (result := text_of(block.get("content"))):
                yield ConversationEntry(role=EntryRole.RESULT, text=result, at=at)
    typed = text_of(content).strip()
    if not typed or line.get("isMeta") or typed.startswith(_NOT_TYPED):
        return
    yield ConversationEntry(role=EntryRole.PERSON, text=typed, at=at)
    if not line.get("isSidechain") and not line.get("isCompactSummary"):
        facts.note_prompt(typed)


def _answer(message: Line, at: float, facts: ConversationFacts) -> Iterator[ConversationEntry]:
    model = str(message.get("model") or "")
    if message.get("id") != facts.mark:
        facts.mark = str(message.get("id"))
        facts.messages += 1
        if model and not model.startswith("<"):
            facts.model = model
            used, sums = message.get("usage") or {}, facts.sums(model)
            sums.input += number(used.get("input_tokens"))
            sums.output += number(used.get("output_tokens"))
            sums.cache_read += number(used.get("cache_read_input_tokens"))
            sums.cache_write += number(used.get("cache_creation_input_tokens"))
    for block in message["content"]:
        if block.get("type") == "text" and block["text"].strip():
            facts.note_answer(block["text"])
            yield ConversationEntry(role=EntryRole.AGENT, text=block["text"], at=at)
        elif block.get("type") == "tool_use":
            yield ConversationEntry(role=EntryRole.CALL, text=call_text(block.get("name"), block.get("input")), at=at)


FORMAT = LineFormat(
    program=ConversationProgram.CLAUDE,
    begin=_begin,
    take=_take,
    unread=(b'{"type":"api-request', b'{"type":"file-history', b'{"type":"queue-operation"'),
)
