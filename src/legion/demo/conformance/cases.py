"""The cases of the conformance suite: what the scripted model does in each, and which promises it shows. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum

from legion.wire.providers import DriverPage, TrialCalls

WORK, INTERRUPT, KILL, LIMIT, DENY = "work", "interrupt", "kill", "limit", "deny"
"""The names of the cases, and of their scripts."""
AFTER = "after"
"""The script that follows an interrupt."""
SLEEP = "tail -f /dev/null"
"""A command that does not end. Some programs refuse a plain sleep."""
STOLEN, BEGUN = "stolen.txt", "begun.txt"


class Promise(Enum):
    """What every driver is held to."""

    STARTS = "starts"
    EDITS = "edits"
    COMMAND = "runs a command"
    SANDBOX = "stays in its sandbox"
    USAGE = "reports usage"
    INTERRUPT = "is interrupted"
    KILL = "is killed and continues"
    LIMIT = "meets a limit"
    PERMISSION = "is refused a permission"


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where the worktrees are, and files outside of them that no agent may reach."""

    trees: str
    secret: str
    planted: str


def cases(page: DriverPage) -> dict[str, tuple[Promise, ...]]:
    """The cases that this program can play, and what each shows."""
    can = page.driver.can
    found: dict[str, tuple[Promise, ...]] = {
        WORK: (Promise.STARTS, Promise.EDITS, Promise.COMMAND, Promise.SANDBOX, Promise.USAGE),
    }
    if "interrupts" in can:
        found[INTERRUPT] = (Promise.INTERRUPT,)
    if "resumes" in can:
        found[KILL] = (Promise.KILL,)
    if page.permissions and page.trial.edit_tool:
        found[DENY] = (Promise.PERMISSION,)
    # The last one: no other ticket starts while its provider is limited.
    found[LIMIT] = (Promise.LIMIT,)
    return found


def scripts(trial: TrialCalls, places: Places) -> dict[str, str]:
    """The scripts of the model, as TOML by name."""
    look = f"cat edited.txt > copied.txt; cat {places.secret} > {STOLEN}; echo x > {places.planted}; echo looked"
    # Killed in its first call, the program may or may not keep that call in its conversation.
    wait = f"if [ -e {BEGUN} ]; then echo again; else touch {BEGUN}; {SLEEP}; fi"
    return {
        WORK: _script(
            _step(_edit(trial, places, "edited.txt", "edited"), say="I write a file.", usage=True),
            _step(_shell(trial, look)),
            _step(_end(trial), say="Done.", usage=True),
        ),
        INTERRUPT: _script(_step(_shell(trial, SLEEP), say="I wait."), _step(_end(trial), say="I waited to the end.")),
        AFTER: _script(_step(_shell(trial, "echo interrupted > interrupted.txt")), _step(_end(trial), say="Done.")),
        KILL: _script(
            _step(_shell(trial, wait), say="I begin."),
            _step(_shell(trial, "echo resumed > resumed.txt")),
            _step(_shell(trial, "echo resumed > resumed.txt")),
            _step(_end(trial), say="Done."),
        ),
        LIMIT: _script('status = 429\nmessage = "rate limited"\nlimit = { resets_in = 3600 }\n'),
        DENY: _script(_step(_edit(trial, places, "refused.txt", "refused")), _step(_end(trial), say="I was refused.")),
    }


def _script(*steps: str) -> str:
    return "\n".join(f"[[step]]\n{step}" for step in steps)


def _step(call: str = "", *, say: str = "", usage: bool = False) -> str:
    lines = [f"say = {json.dumps(say)}"] if say else []
    lines += [call] if call else []
    lines += ["usage = { input = 1000, output = 20, cache_read = 500 }"] if usage else []
    return "\n".join(lines) + "\n"


def _shell(trial: TrialCalls, command: str) -> str:
    return _call(trial.command_tool, trial.command_input.replace("{command}", _inner(command)))


def _edit(trial: TrialCalls, places: Places, path: str, content: str) -> str:
    """By the program's own tool, which may want a complete path; else by its shell."""
    if not trial.edit_tool:
        return _shell(trial, f"echo {content} > {path}")
    place = f"{places.trees}/ticket-{{ticket}}/{path}"
    filled = trial.edit_input.replace("{path}", place).replace("{content}", _inner(f"{content}\n"))
    return _call(trial.edit_tool, filled)


def _end(trial: TrialCalls) -> str:
    """The call that ends a turn, for a program that needs one."""
    return _call(trial.end_tool, trial.end_input.replace("{text}", "Done.")) if trial.end_tool else ""


def _call(tool: str, input: str) -> str:
    """The input is JSON, which TOML has no place for but an inline table."""
    return f"call = {{ tool = {json.dumps(tool)}, input = {_inline(json.loads(input))} }}"


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_inline(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)


def _inner(text: str) -> str:
    """As the inside of a JSON string."""
    return json.dumps(text)[1:-1]
