"""Other real agent programs do a whole job through the gateway, with providers of every kind."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from legion.gateway.access.provider import ProviderDialect
from legion.rehearsal.process import Playing
from tests.gateway.gateways import Running, eventually, running
from tests.support.programs import installed
from tests.support.sampling import sampled
from tests.support.stage import playing

SCRIPT = """
[[step]]
think = "A file is wanted."
say = "I write the file."
call = {{ tool = "{tool}", input = {{ {key} = "echo hello > hello.txt", description = "write" }} }}
usage = {{ input = 1000, output = 20, cache_read = 500 }}

[[step]]
calls = [
    {{ tool = "{tool}", input = {{ {key} = "cat hello.txt", description = "read" }} }},
    {{ tool = "{tool}", input = {{ {key} = "echo two", description = "count" }} }},
]

[[step]]
expect = "(?s)hello.*two"
say = "Done."
usage = {{ input = 2000, output = 40 }}
"""
CODEX = """
model = "some-model"
model_provider = "legion"
[model_providers.legion]
name = "legion"
base_url = "{url}/v1"
env_key = "LEGION_KEY"
wire_api = "responses"
request_max_retries = 1
stream_max_retries = 1
"""


@pytest.fixture
def ground(tmp_path: Path) -> Path:
    for name in ("scripts", "home", "work", "rehearsal", "codex"):
        (tmp_path / name).mkdir()
    return tmp_path


def run(argv: list[str], ground: Path, **env: str) -> str:
    given = {"PATH": os.environ["PATH"], "HOME": str(ground / "home"), **env}
    ended = subprocess.run(
        argv, cwd=ground / "work", env=given, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=110
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def proven(ground: Path, gateway: Running, model: Playing, name: str) -> None:
    assert (ground / "work" / "hello.txt").read_text() == "hello\n"
    assert {(line.script, line.step) for line in model.lines() if line.script} == {("writer", one) for one in (1, 2, 3)}
    wanted = {(1000, 20, 500), (2000, 40, 0)}
    entries = eventually(
        lambda: gateway.entries(name, 3),
        lambda found: {(one.input, one.output, one.cache_read) for one in found} >= wanted,
    )
    assert not [one for one in entries if one.cut or one.error]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", sampled(ProviderDialect, 1))
def test_codex_works_through_the_gateway(ground, kind):
    program = installed("@openai/codex", "0.166.0", "codex")
    (ground / "scripts" / "writer.toml").write_text(SCRIPT.format(tool="exec_command", key="cmd"))
    with playing(ground / "scripts", ground / "rehearsal") as model, running(ground / "gateway") as gateway:
        gateway.provide(model.url, kind=kind, models={"*": "claude-sonnet-4-5"})
        name, token = gateway.grant()
        (ground / "codex" / "config.toml").write_text(CODEX.format(url=gateway.url))
        argv = [str(program), "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
        reply = run([*argv, "rehearsal: writer"], ground, CODEX_HOME=str(ground / "codex"), LEGION_KEY=token)
        items = [one["item"] for one in map(json.loads, reply.splitlines()) if one["type"] == "item.completed"]
        assert [one["text"] for one in items if one["type"] == "agent_message"] == ["I write the file.", "Done."]
        assert [one["text"] for one in items if one["type"] == "reasoning"] == ["A file is wanted."]
        proven(ground, gateway, model, name)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", sampled([ProviderDialect.ANTHROPIC, ProviderDialect.OPENAI_RESPONSES], 1))
def test_opencode_works_through_the_gateway(ground, kind):
    program = installed("opencode-ai", "1.18.33", "opencode")
    (ground / "scripts" / "writer.toml").write_text(SCRIPT.format(tool="bash", key="command"))
    with playing(ground / "scripts", ground / "rehearsal") as model, running(ground / "gateway") as gateway:
        gateway.provide(model.url, kind=kind, models={"*": "claude-sonnet-4-5"})
        name, token = gateway.grant()
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "legion",
            "options": {"baseURL": f"{gateway.url}/v1", "apiKey": token},
            "models": {"m": {"name": "m"}},
        }
        settings = {"provider": {"legion": provider}, "permission": "allow", "autoupdate": False, "share": "disabled"}
        env = {"OPENCODE_CONFIG_CONTENT": json.dumps(settings), "OPENCODE_DISABLE_MODELS_FETCH": "1"}
        reply = run([str(program), "run", "--format", "json", "-m", "legion/m", "rehearsal: writer"], ground, **env)
        texts = [one["part"]["text"] for one in map(json.loads, reply.splitlines()) if one["type"] == "text"]
        assert texts == ["I write the file.", "Done."]
        proven(ground, gateway, model, name)
