"""Passes: the rights of a run at the gateway, one file each, named by the digest of its token."""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from legion.gateway.files.folder import VERSION, Damaged, GatewayFolder, parse
from legion.system import files


@dataclass(frozen=True, kw_only=True)
class Pass:
    run: str
    ticket: int
    project: int
    agent: str
    provider: str
    models: tuple[str, ...] | None = None
    """The models that the run may use; None: any."""
    budget_usd: float | None = None
    """Total budget of its ticket; None: no limit."""
    spent_usd: float = 0.0
    """What the ticket had cost before this run."""
    role: str = ""
    team: str = ""
    """Labels for routes, like `agent`; empty: none."""
    recorded: bool = False
    """Requests and answers are recorded."""


@dataclass(frozen=True, kw_only=True)
class Granted:
    """A pass as stored in the folder."""

    pass_: Pass
    since: float
    """When the run got its first pass: no line of the ledger about the run is older."""


def grant(folder: GatewayFolder, pass_: Pass) -> str:
    """Create a pass and return its token. An older pass of the same run ends."""
    older = list(_of_run(folder, pass_.run))
    facts = {
        "version": VERSION,
        "run": pass_.run,
        "ticket": pass_.ticket,
        "project": pass_.project,
        "agent": pass_.agent,
        "provider": pass_.provider,
        "models": None if pass_.models is None else list(pass_.models),
        "budget_usd": pass_.budget_usd,
        "spent_usd": pass_.spent_usd,
        "role": pass_.role,
        "team": pass_.team,
        "recorded": pass_.recorded,
        "since": min((granted.since for _, granted in older), default=time.time()),
    }
    token = f"legion-{secrets.token_urlsafe(32)}"
    files.write_atomic(pass_file(folder, token), json.dumps(facts))
    for path, _ in older:
        path.unlink(missing_ok=True)
    return token


def revoke(folder: GatewayFolder, run: str) -> None:
    """End the passes of a run: its token is no longer valid."""
    for path, _ in _of_run(folder, run):
        path.unlink(missing_ok=True)


def set_budget(folder: GatewayFolder, run: str, budget_usd: float) -> None:
    """Change the total budget of the run's ticket; the token stays valid."""
    for path, one in _of_run(folder, run):
        if one.pass_.budget_usd != budget_usd:
            facts = json.loads(path.read_bytes())
            files.write_atomic(path, json.dumps({**facts, "budget_usd": budget_usd}))


def granted(folder: GatewayFolder) -> Iterator[tuple[Path, Granted]]:
    """All passes. Damaged ones give no rights and are left out."""
    for path in sorted(folder.passes.glob("*.json")):
        with contextlib.suppress(FileNotFoundError, Damaged):
            yield path, parse_pass(path.read_bytes(), path)


def holder(folder: GatewayFolder, token: str) -> Pass | None:
    """The pass with this token; None where it has ended, was never made or is damaged."""
    path = pass_file(folder, token)
    try:
        return parse_pass(path.read_bytes(), path).pass_
    except (FileNotFoundError, Damaged):
        return None


def pass_file(folder: GatewayFolder, token: str) -> Path:
    digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
    return folder.passes / f"{digest}.json"


def parse_pass(content: bytes, path: Path) -> Granted:
    facts = parse(content, path)
    try:
        pass_ = Pass(
            run=facts["run"],
            ticket=facts["ticket"],
            project=facts["project"],
            agent=facts["agent"],
            provider=facts["provider"],
            models=None if facts["models"] is None else tuple(facts["models"]),
            budget_usd=facts["budget_usd"],
            spent_usd=facts["spent_usd"],
            role=facts.get("role", ""),
            team=facts.get("team", ""),
            recorded=facts.get("recorded", False),
        )
    except (KeyError, TypeError):
        raise Damaged(f"{path} is damaged: grant the run a new pass.") from None
    # A pass without this field may have been written at any time.
    return Granted(pass_=pass_, since=float(facts.get("since", 0.0)))


def _of_run(folder: GatewayFolder, run: str) -> Iterator[tuple[Path, Granted]]:
    return ((path, one) for path, one in granted(folder) if one.pass_.run == run)
