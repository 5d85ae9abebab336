"""The real Claude Code works through the gateway, and the gateway counts the usage that the model reports."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from pathlib import Path

import claude_agent_sdk
import pytest

from legion.gateway.access.provider import ProviderDialect
from legion.gateway.accounting.ledger import RequestEntry
from tests.gateway.gateways import Running, running
from tests.support.sampling import sampled
from tests.support.stage import playing

PROGRAM = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
SCRIPT = """
[[step]]
say = "I write the file."
call = { tool = "Write", input = { file_path = "{cwd}/hello.txt", content = "hello" } }
usage = { input = 1000, output = 20, cache_read = 500, cache_write = 30 }

[[step]]
say = "Done."
usage = { input = 2000, output = 40 }
"""


@pytest.fixture
def ground(tmp_path: Path) -> Path:
    for name in ("scripts", "home", "work", "rehearsal"):
        (tmp_path / name).mkdir()
    (tmp_path / "scripts" / "writer.toml").write_text(SCRIPT)
    return tmp_path


def claude(ground: Path, gateway: Running, token: str) -> dict[str, object]:
    """Its last word."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(ground / "home"),
        "ANTHROPIC_BASE_URL": gateway.url,
        "ANTHROPIC_AUTH_TOKEN": token,
        "CLAUDE_CONFIG_DIR": str(ground / "home" / "claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
    }
    argv = ["-p", "rehearsal: writer", "--output-format", "json", "--session-id", str(uuid.uuid4())]
    argv += ["--permission-mode", "acceptEdits", "--model", "claude-sonnet-4-5"]
    ended = subprocess.run(
        [PROGRAM, *argv], cwd=ground / "work", env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=110
    )
    reply: dict[str, object] = json.loads(ended.stdout)
    return reply


@pytest.mark.slow
@pytest.mark.skipif(not PROGRAM.exists(), reason="the program does not come with this platform's SDK")
def test_claude_code_works_through_the_gateway(ground):
    with playing(ground / "scripts", ground / "rehearsal") as model, running(ground / "gateway") as gateway:
        gateway.provide(model.url)
        run, token = gateway.grant(budget_usd=5.0)
        result = claude(ground, gateway, token)
        assert (result["is_error"], result["result"]) == (False, "Done."), result
        assert (ground / "work" / "hello.txt").read_text() == "hello"
        entries = [line for line in gateway.entries(run, 2) if line.status == 200 and line.output in (20, 40)]
        assert [(one.input, one.output, one.cache_read, one.cache_write) for one in entries] == [
            (1000, 20, 500, 30),
            (2000, 40, 0, 0),
        ]
        assert result["total_cost_usd"] == pytest.approx(sum(_usd(one) for one in entries), rel=0.01)
        assert not [one for one in entries if one.cut or one.error]


@pytest.mark.slow
@pytest.mark.skipif(not PROGRAM.exists(), reason="the program does not come with this platform's SDK")
@pytest.mark.parametrize("kind", sampled([ProviderDialect.OPENAI_CHAT, ProviderDialect.OPENAI_RESPONSES], 1))
def test_claude_code_works_with_a_provider_that_speaks_another_dialect(ground, kind):
    with playing(ground / "scripts", ground / "rehearsal") as model, running(ground / "gateway") as gateway:
        gateway.provide(model.url, kind=kind, models={"*": "gpt-5-mini"})
        run, token = gateway.grant()
        result = claude(ground, gateway, token)
        assert (result["is_error"], result["result"]) == (False, "Done."), result
        assert (ground / "work" / "hello.txt").read_text() == "hello"
        entries = [line for line in gateway.entries(run, 2) if line.output in (20, 40)]
        assert [(one.model, one.input + one.cache_write, one.cache_read) for one in entries] == [
            ("gpt-5-mini", 1030, 500),
            ("gpt-5-mini", 2000, 0),
        ]
        assert not [one for one in entries if one.cut or one.error]
        steps = [(line.script, line.step) for line in model.lines() if line.script]
        assert steps == [("writer", 1), ("writer", 2)]


@pytest.mark.slow
@pytest.mark.skipif(not PROGRAM.exists(), reason="the program does not come with this platform's SDK")
def test_claude_code_stops_at_once_when_the_budget_is_reached(ground):
    with playing(ground / "scripts", ground / "rehearsal") as model, running(ground / "gateway") as gateway:
        gateway.provide(model.url)
        run, token = gateway.grant(budget_usd=1.0, spent_usd=1.0)
        result = claude(ground, gateway, token)
        assert result["is_error"] is True
        assert "legion: budget reached: 1.00 of 1.00 USD are spent" in str(result["result"])
        assert {one.error for one in gateway.entries(run, 1)} == {"budget_reached"}


@pytest.mark.slow
@pytest.mark.skipif(not PROGRAM.exists(), reason="the program does not come with this platform's SDK")
def test_claude_code_stops_at_once_at_a_model_that_its_run_may_not_use(ground):
    with playing(ground / "scripts", ground / "rehearsal") as model, running(ground / "gateway") as gateway:
        gateway.provide(model.url)
        run, token = gateway.grant(models=("claude-haiku-*",))
        result = claude(ground, gateway, token)
        assert result["is_error"] is True
        assert "legion: model not allowed: claude-sonnet-4-5" in str(result["result"])
        assert [one.error for one in gateway.entries(run, 1)].count("model_not_allowed") == 1


def _usd(entry: RequestEntry) -> float:
    assert entry.usd is not None
    return entry.usd
