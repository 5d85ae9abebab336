"""Claude Code as the daemon sees it: its capabilities, its files, and how a run of it is prepared. Imports no SDK."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from legion.domain.scheduling.usage import Usage
from legion.drivers import Driver, Program
from legion.drivers.claude import interactive, program
from legion.drivers.claude import transcript as transcripts
from legion.drivers.claude.options import ClaudeOptions, PermissionMode
from legion.drivers.profile import (
    Capabilities,
    ConversationSize,
    DriverProfile,
    GatewayEndpoint,
    LoginLink,
    ModelSetup,
    PreparedRun,
    ProgramFile,
    RunRequest,
)
from legion.drivers.state_folder import own_folder, put_aside
from legion.drivers.terminal_options import TerminalOptions
from legion.system import files

_FOLDER = "claude"
"""CLAUDE_CONFIG_DIR, in the agent's state folder."""
_LOGIN = ".credentials.json"
_ALLOWED_IN_A_SANDBOX = ("Bash", "WebFetch", "WebSearch", "NotebookEdit")
"""Tools that need no question where nothing outside can be harmed."""
_ENVIRONMENT = {
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
}
_SHORT_NAME = re.compile(r"[a-z]+")
_TOKENS = {
    "inputTokens": "input",
    "outputTokens": "output",
    "cacheReadInputTokens": "cache_read",
    "cacheCreationInputTokens": "cache_write",
}


class ClaudeProfile(DriverProfile):
    name: str = "claude"
    title: str = "Claude Code"
    capabilities: Capabilities = Capabilities(
        talks=True,
        interrupts=True,
        resumes=True,
        asks=True,
        reads_only=True,
        budgets=True,
        models=True,
        usage=True,
        transcript=True,
        rewinds=True,
        interactive=True,
    )
    heavy: bool = True
    instruction_files: tuple[str, ...] = ("CLAUDE.md", ".claude/CLAUDE.md")

    def load(self) -> Driver:
        # The SDK takes a second to import and much memory, which only a runner should pay.
        made: Driver = importlib.import_module("legion.drivers.claude.driver").ClaudeDriver()
        return made

    def warm(self) -> None:
        self.load()
        # Locks of the SDK load half of anyio when the first of them is made, which is long after the fork.
        importlib.import_module("anyio").run(importlib.import_module("anyio.lowlevel").checkpoint)

    def prepare(self, request: RunRequest) -> PreparedRun:
        assert request.model is not None, "this driver uses models"
        config_dir = own_folder(request.state, _FOLDER)
        files.write_atomic(request.given / "briefing.md", request.input.prompt, mode=0o644)
        files.write_atomic(request.given / "again.md", request.input.resume_prompt, mode=0o644)
        env = {**request.env, **_ENVIRONMENT, "CLAUDE_CONFIG_DIR": str(config_dir)}
        assert request.model.access is not None, "a provider or the person's login"
        env |= _access_variables(request.model.access, config_dir)
        if request.sandboxed:
            env["IS_SANDBOX"] = "1"
        if request.input.shares_prompt:
            # The system prompt would name the folder of its memory.
            env["CLAUDE_CODE_DISABLE_AUTO_MEMORY"] = "1"
        path = request.model.program.path
        login = (request.model.access.credentials,) if isinstance(request.model.access, LoginLink) else ()
        return PreparedRun(
            program=Program(argv=(str(path),), cwd=request.tree, env=env),
            options=_options(request, request.model, config_dir).to_json(),
            readable=(path.absolute(), path.resolve(), *login),
        )

    def interactive(self, request: RunRequest) -> PreparedRun:
        prepared = self.prepare(request)
        options = ClaudeOptions.from_json(prepared.options)
        interactive.skip_first_questions(options.config_dir, request.tree)
        argv = interactive.command_line(Path(prepared.program.argv[0]), options, request.input.prompt)
        program = replace(
            prepared.program, argv=argv, env={**prepared.program.env, "TERM": "xterm-256color"}, terminal=True
        )
        shown = TerminalOptions(
            ready=interactive.READY, asking=interactive.ASKING, leave=interactive.LEAVE, link=options.desk
        )
        return replace(prepared, program=program, options=shown.to_json())

    def find_program(self, wanted: str) -> ProgramFile:
        return program.find(wanted)

    def login_file(self) -> Path | None:
        return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude") / _LOGIN

    def model_pattern(self, model: str) -> str:
        """Claude Code's own short names (`opus`, `sonnet[1m]`) mean the latest model of their kind."""
        plain = model.partition("[")[0]
        return f"claude-{plain}-*" if _SHORT_NAME.fullmatch(plain) else plain

    def tools(self, options: Mapping[str, Any]) -> tuple[str, ...] | None:
        found = options.get("tools")
        return None if found is None else tuple(found)

    def usage(self, models: Mapping[str, Any]) -> dict[str, Usage]:
        return {str(model): _usage(facts) for model, facts in models.items()}

    def has_conversation(self, state: Path, conversation: str) -> bool:
        return transcripts.is_there(state / _FOLDER, conversation)

    def delivered(self, state: Path, conversation: str, ids: Collection[str]) -> frozenset[str]:
        return transcripts.delivered(state / _FOLDER, conversation, ids)

    def conversation_size(self, state: Path, conversation: str) -> ConversationSize:
        return transcripts.size(state / _FOLDER, conversation)

    def put_aside(self, state: Path, conversation: str) -> bool:
        there = self.has_conversation(state, conversation)
        transcripts.put_aside(state / _FOLDER, conversation)
        return there

    def resume_point(self, state: Path, conversation: str, call: str) -> str | None:
        return transcripts.point_after(state / _FOLDER, conversation, call)

    def transcript(self, state: Path, conversation: str) -> Path | None:
        return transcripts.file_of(state / _FOLDER, conversation)

    def take_transcript(self, transcript: Path, conversation: str, state: Path, tree: Path) -> None:
        transcripts.copy(transcript, own_folder(state, _FOLDER), conversation, tree)


def _options(request: RunRequest, model: ModelSetup, config_dir: Path) -> ClaudeOptions:
    given, settings = request.input, model.settings
    mode = PermissionMode(settings.permission_mode) if settings.permission_mode else PermissionMode.ACCEPT_EDITS
    return ClaudeOptions(
        conversation=model.conversation,
        config_dir=config_dir,
        prompt=request.given / "briefing.md",
        again=request.given / "again.md",
        rules=given.rules,
        model=given.model or settings.model,
        fallback_model=settings.fallback_model,
        permission_mode=mode,
        allowed_tools=(*settings.allowed_tools, *(_ALLOWED_IN_A_SANDBOX if request.sandboxed else ())),
        tools=settings.tools,
        max_turns=settings.max_turns,
        budget_usd=model.budget_usd,
        asks=given.asks,
        prompt_id=given.prompt_id,
        patience=settings.answer_within,
        desk=given.tool_link,
        fork_of=given.fork_of,
        fork_at=given.fork_at,
        camera=given.state_store,
        streams=given.streams,
    )


def _access_variables(access: GatewayEndpoint | LoginLink, config_dir: Path) -> dict[str, str]:
    login = config_dir / _LOGIN
    if isinstance(access, LoginLink):
        if not (login.is_symlink() and login.readlink() == access.credentials):
            put_aside(login)
            login.symlink_to(access.credentials)
        return {}
    if login.is_symlink():
        login.unlink()
    variable = "CLAUDE_CODE_OAUTH_TOKEN" if access.oauth else "ANTHROPIC_AUTH_TOKEN"
    return {"ANTHROPIC_BASE_URL": access.url, variable: access.token}


def _usage(facts: object) -> Usage:
    if not isinstance(facts, Mapping):
        return Usage()
    tokens = {ours: number for theirs, ours in _TOKENS.items() if isinstance(number := facts.get(theirs), int)}
    usd = facts.get("costUSD")
    return Usage(usd=float(usd) if isinstance(usd, int | float) else 0.0, **tokens)
