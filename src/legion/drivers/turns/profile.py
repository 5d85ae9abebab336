"""A described agent program as the daemon sees it: its capabilities, its files, and how a run of it is prepared."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from legion.domain.scheduling.usage import Usage
from legion.drivers import Driver, Program
from legion.drivers.profile import (
    Capabilities,
    DriverProfile,
    LoginLink,
    ModelSetup,
    PreparedRun,
    ProgramFile,
    RunRequest,
)
from legion.drivers.programs import locate
from legion.drivers.programs.description import DriverKind, ProgramDescription
from legion.drivers.state_folder import own_folder
from legion.drivers.terminal_options import TerminalOptions
from legion.drivers.turns import conversations
from legion.drivers.turns.options import TurnOptions
from legion.system import files, safe_files

LOADED = {
    DriverKind.ACP: ("legion.drivers.acp.driver", "AcpDriver"),
    DriverKind.JSON: ("legion.drivers.json_lines.driver", "JsonLinesDriver"),
    DriverKind.COMMAND: ("legion.drivers.registry", "CommandDriver"),
    DriverKind.TERMINAL: ("legion.drivers.terminal.driver", "TerminalDriver"),
}
"""Module and class of each driver: a library that only runners need is imported only there."""
_MOST_USD, _MOST_TOKENS = 1e6, 10**12
"""A report beyond these is no report."""
_WITHOUT_CONVERSATION = (DriverKind.COMMAND, DriverKind.TERMINAL)
"""Legion knows nothing of what is said between them and the model."""


def load(kind: DriverKind) -> Driver:
    module, name = LOADED[kind]
    made: Driver = getattr(importlib.import_module(module), name)()
    return made


class DescribedProfile(DriverProfile):
    """The profile of one description."""

    own_home = True

    def __init__(self, program: ProgramDescription) -> None:
        self.program = program
        self.name = program.name
        self.kind = program.driver.value
        self.title = program.title
        self.default_model = program.model.default
        self.heavy = program.driver is DriverKind.ACP
        self.instruction_files = program.instructions
        self.capabilities = capabilities(program)

    def load(self) -> Driver:
        return load(self.program.driver)

    def find_program(self, wanted: str) -> ProgramFile:
        return locate.find(self.program)

    def refuse_missing(self) -> None:
        locate.path_of(self.program)

    def usage(self, models: Mapping[str, Any]) -> dict[str, Usage]:
        return {str(model): _usage(facts) for model, facts in models.items() if isinstance(facts, Mapping)}

    def has_conversation(self, state: Path, conversation: str) -> bool:
        return bool(conversations.remembered(state / self.name, conversation))

    def delivered(self, state: Path, conversation: str, ids: Collection[str]) -> frozenset[str]:
        return conversations.delivered(state / self.name, self.program.conversations, conversation, ids)

    def prepare(self, request: RunRequest) -> PreparedRun:
        assert request.model is not None, "this driver uses models"
        home = own_folder(request.state, self.name)
        values = _values(request, request.model, home, self._model(request))
        for path, text in self.program.files.items():
            safe_files.write(home, path, _filled(text, values).encode())
        files.write_atomic(request.given / "briefing.md", self._first_prompt(request), mode=0o644)
        files.write_atomic(request.given / "again.md", request.input.resume_prompt, mode=0o644)
        found = request.model.program.path
        variables = {name: _filled(text, values) for name, text in self.program.environment.items()}
        path = locate.search_path(found, request.env.get("PATH", ""))
        unpacked = locate.unpacked(found, self.program)
        env = {**request.env, "HOME": str(home), "PATH": path, **unpacked, **variables}
        argv = (str(found), *(_filled(word, values) for word in self.program.program.run[1:]))
        kind = self.program.driver
        stdin = request.given / "briefing.md" if kind is DriverKind.COMMAND else None
        terminal = kind is DriverKind.TERMINAL
        options: Mapping[str, Any] = {}
        if terminal:
            env = {"TERM": "xterm-256color", **env}
            options = TerminalOptions(prompt=request.input.prompt, **asdict(self.program.terminal)).to_json()
        elif kind is not DriverKind.COMMAND:
            options = self._options(request, request.model, home).to_json()
        return PreparedRun(
            program=Program(argv=argv, cwd=request.tree, env=env, stdin=stdin, terminal=terminal),
            options=options,
            readable=(*locate.needed_folders(found), *map(Path, unpacked.values())),
        )

    def interactive(self, request: RunRequest) -> PreparedRun:
        if not self.capabilities.interactive:
            return super().interactive(request)
        prepared = self.prepare(request)
        return prepared if prepared.program.terminal else self._in_terminal(request, prepared)

    def _in_terminal(self, request: RunRequest, prepared: PreparedRun) -> PreparedRun:
        """The conversation that the program had alone; before its first message, a new one with the briefing."""
        assert request.model is not None, "this driver uses models"
        form, found, home = self.program.interactive, prepared.program, own_folder(request.state, self.name)
        session = conversations.remembered(home, request.model.conversation)
        conversations.copy_before_load(home, self.program.conversations, self.program.acp.copy, session)
        values = _values(request, request.model, home, self._model(request))
        words = form.resume if session else ()
        argv = [found.argv[0], *(_filled(word, {**values, "session": session}) for word in words)]
        link = request.input.tool_link if form.tools or form.environment else None
        own = {} if link is None else {name: _filled(text, values) for name, text in form.environment.items()}
        env = {"TERM": "xterm-256color", **found.env, **own}
        shown = TerminalOptions(
            **asdict(replace(self.program.terminal, leave=form.leave)),
            prompt="" if session else self._first_prompt(request),
            link=link,
        )
        argv += form.tools if link is not None else ()
        program = replace(found, argv=tuple(argv), env=env, terminal=True)
        return replace(prepared, program=program, options=shown.to_json())

    def _first_prompt(self, request: RunRequest) -> str:
        """A program that only reads its briefing gets the rules in front of it."""
        given = request.input
        if self.program.driver in _WITHOUT_CONVERSATION and given.rules:
            return f"{given.rules}\n\n{given.prompt}"
        return given.prompt

    def _model(self, request: RunRequest) -> str:
        """The ticket's model. That of [claude] is Claude Code's own, and may be one of its short names."""
        assert request.model is not None, "this driver uses models"
        wanted = request.input.model
        return wanted if wanted and wanted != request.model.settings.model else self.default_model

    def _options(self, request: RunRequest, model: ModelSetup, home: Path) -> TurnOptions:
        given, settings = request.input, model.settings
        values = _values(request, model, home, self._model(request))
        resume = tuple(_filled(word, values) for word in self.program.json.resume)
        return TurnOptions(
            program=replace(self.program, json=replace(self.program.json, resume=resume)),
            conversation=model.conversation,
            home=home,
            prompt=request.given / "briefing.md",
            again=request.given / "again.md",
            rules=given.rules,
            sandboxed=request.sandboxed,
            permission_mode=settings.permission_mode or "acceptEdits",
            allowed_tools=settings.allowed_tools,
            asks=given.asks,
            patience=settings.answer_within,
            prompt_id=given.prompt_id,
            link=given.tool_link if self.program.can.tools else None,
            gateway_url=values["url"],
            gateway_token=values["token"],
        )


def capabilities(program: ProgramDescription) -> Capabilities:
    """The gateway keeps the budget of every program whose model it serves, and of no other."""
    talks = program.driver not in _WITHOUT_CONVERSATION
    terminal = program.driver is DriverKind.TERMINAL
    can = program.can
    return Capabilities(
        talks=talks,
        interactive=terminal or bool(program.interactive.resume),
        interrupts=terminal or (talks and can.interrupt),
        resumes=talks and can.resume,
        asks=talks and can.permissions and can.tools,
        reads_only=False,
        budgets=program.uses_gateway,
        models=program.uses_gateway,
        usage=can.usage,
        transcript=talks and can.resume and can.transcript,
    )


def _values(request: RunRequest, model: ModelSetup, home: Path, name: str) -> Mapping[str, str]:
    access = model.access
    assert not isinstance(access, LoginLink), "only the gateway serves it, or its own account"
    return {
        "url": "" if access is None else access.url,
        "token": "" if access is None else access.token,
        "model": name,
        "home": str(home),
        "tree": str(request.tree),
        "briefing": str(request.given / "briefing.md"),
    }


def _usage(facts: Mapping[str, Any]) -> Usage:
    """As the program reports it, over its complete conversation. A cost that it does not report is not known."""

    def count(*names: str) -> int:
        return next(
            (facts[name] for name in names if type(facts.get(name)) is int and 0 <= facts[name] < _MOST_TOKENS), 0
        )

    usd = facts.get("usd")
    known = isinstance(usd, int | float) and usd is not True and 0 <= usd < _MOST_USD
    return Usage(
        input=count("input_tokens", "input"),
        output=count("output_tokens", "output"),
        cache_read=count("cached_read_tokens", "cached_input_tokens", "cacheRead"),
        cache_write=count("cached_write_tokens", "cacheWrite"),
        usd=float(usd or 0.0) if known else 0.0,
        unpriced=int(not known),
    )


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Other braces stay as they are: many of these texts are JSON."""
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text
