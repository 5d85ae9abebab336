"""Claude Code as the daemon sees it: its capabilities, its files, and how a run of it is prepared. Imports no SDK."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from legion.domain.scheduling.usage import Usage
from legion.domain.text import to_json
from legion.drivers import Driver, Program
from legion.drivers.claude import transcript
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
    ProgramUnusable,
    RunRequest,
    ToolLink,
)
from legion.drivers.state_folder import own_folder, put_aside
from legion.drivers.terminal_options import TerminalOptions
from legion.system import files, safe_files

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
        skip_first_questions(options.config_dir, request.tree)
        argv = command_line(Path(prepared.program.argv[0]), options, request.input.prompt)
        program = replace(
            prepared.program, argv=argv, env={**prepared.program.env, "TERM": "xterm-256color"}, terminal=True
        )
        shown = TerminalOptions(ready=READY, asking=ASKING, leave=LEAVE, link=options.desk)
        return replace(prepared, program=program, options=shown.to_json())

    def find_program(self, wanted: str) -> ProgramFile:
        return find(wanted)

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


# Claude Code's own interactive form on a conversation of ours: its command line, and what its first start needs.

_STATE = ".claude.json"
_LARGEST_STATE = 16 << 20

LEAVE = "\x03"
"""Ctrl-C interrupts a turn, then clears what is typed, then, twice, exits."""
READY = (r"^\s*[>❯]\s*$", r"\? for shortcuts")
ASKING = (r"Do you want to [^\n?]*\?", r"Do you trust the files", r"No, and tell Claude what to do differently")


def command_line(program: Path, options: ClaudeOptions, prompt: str) -> tuple[str, ...]:
    """It continues the conversation, or starts it under our id. `prompt` is its first message; empty: none."""
    known = transcript.has_messages(options.config_dir, options.conversation)
    allowed = (*options.allowed_tools, *(() if options.desk is None else (f"mcp__{options.desk.server}",)))
    if not known:
        transcript.put_aside(options.config_dir, options.conversation)
    return (
        str(program),
        *(("--resume", options.conversation) if known else ("--session-id", options.conversation)),
        *(("--model", options.model) if options.model else ()),
        *("--permission-mode", options.permission_mode.value),
        *(("--allowedTools", ",".join(allowed)) if allowed else ()),
        *(("--tools", ",".join(options.tools)) if options.tools is not None else ()),
        # No settings files: a repository's could name another endpoint or run commands.
        *("--setting-sources", "", "--strict-mcp-config"),
        *(("--mcp-config", _servers(options.desk)) if options.desk is not None else ()),
        *(("--append-system-prompt", options.rules) if options.rules else ()),
        *(("--", prompt) if prompt and not known else ()),
    )


def _servers(link: ToolLink) -> str:
    """Legion's tools. The runner fills in the address; the token is in a variable, which other users cannot read."""
    headers = {"Authorization": "Bearer ${LEGION_TOOLS_TOKEN}"}
    return to_json({"mcpServers": {link.server: {"type": "http", "url": "{tools_url}", "headers": headers}}})


def skip_first_questions(config_dir: Path, tree: Path) -> None:
    """Its first start asks for colours and for trust in the folder, which the sandbox has answered already."""
    found: dict[str, Any] = {}
    with contextlib.suppress(ValueError):
        read = json.loads(safe_files.read(config_dir, _STATE, most=_LARGEST_STATE) or b"{}")
        found = read if isinstance(read, dict) else {}
    projects = found.get("projects")
    projects = projects if isinstance(projects, dict) else {}
    mine = projects.get(str(tree))
    trusted = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    facts = {
        "theme": "dark",
        **found,
        "hasCompletedOnboarding": True,
        "bypassPermissionsModeAccepted": True,
        "projects": {**projects, str(tree): {**(mine if isinstance(mine, dict) else {}), **trusted}},
    }
    safe_files.write(config_dir, _STATE, to_json(facts).encode())


# Finds the Claude Code to start: the person's own where it is new enough, else the one that came with the SDK.

OLDEST = (2, 1, 248)
"""Earlier releases could not send prompts verbatim."""

_VERSION_TIMEOUT = 60.0
"""Seconds. The file has hundreds of megabytes, which a busy machine may have to read from its disk first."""


def find(wanted: str = "") -> ProgramFile:
    """The program named in the settings, else the one on PATH, else the bundled one. Raises ProgramUnusable."""
    if wanted:
        named = shutil.which(str(Path(wanted).expanduser()))
        if named is None:
            raise ProgramUnusable(f"There is no program {wanted}: fix `claude.program` in your settings, or remove it.")
        return _new_enough(Path(named))
    own = shutil.which("claude")
    try:
        if own is not None:
            return _new_enough(Path(own))
        complaint = ""
    except ProgramUnusable as unfit:
        complaint = str(unfit)
    bundled = bundled_program()
    if bundled is None:
        raise ProgramUnusable(complaint or "Claude Code is not installed: install it, or reinstall claude-agent-sdk.")
    return ProgramFile(path=bundled, version=version_of(bundled), bundled=True, passed_over=complaint)


def bundled_program() -> Path | None:
    spec = importlib.util.find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "_bundled" / "claude"
    return path if path.is_file() else None


def version_of(path: Path) -> str:
    """As the program reports it; empty where it does not in time on a busy machine. Raises ProgramUnusable where it
    reports none.
    """
    stat = path.stat()
    try:
        return _read_version(str(path), stat.st_mtime_ns, stat.st_size)
    except subprocess.TimeoutExpired:
        return ""


@lru_cache(maxsize=16)
def _read_version(path: str, _changed: int, _size: int) -> str:
    """Read once for every program file: starting the program takes a moment."""
    env = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    env["HOME"] = "/nonexistent"
    try:
        done = subprocess.run(
            [path, "--version"],
            env=env,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_VERSION_TIMEOUT,
            check=False,
        )
    except OSError as trouble:
        raise ProgramUnusable(f"{path} does not run ({trouble.strerror}): install Claude Code again.") from trouble
    found = re.search(rb"(\d+)\.(\d+)\.(\d+)", done.stdout)
    if done.returncode != 0 or found is None:
        raise ProgramUnusable(f"{path} does not report its version: install Claude Code again.")
    return found[0].decode()


def _new_enough(path: Path) -> ProgramFile:
    version = version_of(path)
    if version and tuple(int(part) for part in version.split(".")) < OLDEST:
        oldest = ".".join(str(part) for part in OLDEST)
        raise ProgramUnusable(f"{path} is version {version}, and {oldest} is needed: update it with `claude update`.")
    return ProgramFile(path=path, version=version, bundled=False)
