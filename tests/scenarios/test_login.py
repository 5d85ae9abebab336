"""`legion provider login copilot` against a stand-in of GitHub on loopback."""

from __future__ import annotations

import json
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from tests.gateway.dialects.bodies import CHAT_STREAM
from tests.gateway.upstream import Exchange, Upstream
from tests.support.models import Company, company

LASTING = "gho_lasting0123456789abcdef"


class GitHub:
    """The person confirms the code after the second look."""

    def __init__(self, end: dict[str, object]) -> None:
        self.looks = 0
        self.end = end

    def __call__(self, exchange: Exchange) -> None:
        told = {name: values[0] for name, values in parse_qs(exchange.body.decode()).items()}
        match exchange.line.split()[1]:
            case "/login/device/code":
                assert told["client_id"]
                begun = {
                    "device_code": "d",
                    "user_code": "AB12-CD34",
                    "verification_uri": "https://example.test/device",
                }
                exchange.reply(200, json.dumps({**begun, "expires_in": 900, "interval": 0.01}).encode())
            case "/login/oauth/access_token":
                assert told["device_code"] == "d"
                self.looks += 1
                pending = {"error": "authorization_pending"}
                exchange.reply(200, json.dumps(pending if self.looks < 3 else self.end).encode())
            case "/token":
                assert exchange.header("authorization") == f"token {LASTING}"
                exchange.reply(200, json.dumps({"token": "tid=1", "expires_at": time.time() + 1500}).encode())
            case _:
                assert exchange.header("authorization") == "Bearer tid=1"
                exchange.begin(CHAT_STREAM)
                exchange.finish()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("login"), provided=False) as one:
        yield one


@pytest.fixture
def github() -> Iterator[Upstream]:
    server = Upstream()
    yield server
    server.close()


def words(github: Upstream) -> list[str]:
    return ["--github", github.url, "--token-url", f"{github.url}/token", "--url", github.url, "--model", "gpt-5"]


def test_it_is_off_until_the_person_says_that_they_know(here: Company, github: Upstream):
    refused = here.cli("provider", "login", "copilot", *words(github))
    assert refused.returncode == 4
    assert "unofficial" in refused.stderr
    assert "accounts were suspended" in refused.stderr
    assert github.seen == []
    refused = here.cli("provider", "add", "copilot", "--key-stdin", stdin=LASTING)
    assert "`legion provider login copilot`" in refused.stderr


def test_a_code_is_confirmed_and_the_provider_answers(here: Company, github: Upstream):
    github.script = GitHub({"access_token": LASTING, "token_type": "bearer"})
    said = here.told("provider", "login", "copilot", "--unofficial", *words(github))
    assert "Open https://example.test/device and type AB12-CD34" in said
    assert "Provider copilot is added" in said
    kept: Path = here.squad.data.keys / "copilot"
    assert (kept.read_text().strip(), stat.S_IMODE(kept.stat().st_mode)) == (LASTING, 0o600)
    assert LASTING not in said + (here.squad.folder / "providers.toml").read_text()
    answer = here.json("provider", "test", "copilot")
    assert (answer["ok"], answer["model"]) == (True, "gpt-5")


def test_a_login_that_is_declined_changes_nothing(here: Company, github: Upstream):
    before = here.told("provider", "list")
    github.script = GitHub({"error": "access_denied"})
    refused = here.cli("provider", "login", "copilot", "--unofficial", *words(github))
    assert (refused.returncode, "declined" in refused.stderr) == (1, True)
    assert here.told("provider", "list") == before


def test_claudes_login_needs_its_program_and_a_terminal(here: Company):
    refused = here.cli("provider", "login", "claude")
    assert refused.returncode == 2
    assert "claude" in refused.stderr
