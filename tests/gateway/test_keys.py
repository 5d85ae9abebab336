"""Keys are read from where the person stores them, and sent only to the provider."""

from __future__ import annotations

import json
import os
import stat
import sys
import threading
import time
from pathlib import Path

import pytest

from legion.domain.errors import BadInput
from legion.gateway.access.provider import KeyFrom, KeySource, KeyStyle, Provider
from tests.gateway.gateways import everything, started
from tests.gateway.upstream import WHOLE, Upstream, whole

SECRET = "sk-ant-planted-0123456789"


def kept_in(path: Path, content: str, mode: int = 0o600) -> KeySource:
    path.write_text(content)
    path.chmod(mode)
    return KeySource(origin=KeyFrom.FILE, where=str(path))


def command(*argv: str) -> KeySource:
    return KeySource(origin=KeyFrom.COMMAND, argv=argv)


@pytest.mark.parametrize(
    ("auth", "header", "value"),
    [(KeyStyle.API_KEY, "x-api-key", SECRET), (KeyStyle.BEARER, "authorization", f"Bearer {SECRET}")],
)
def test_the_real_key_takes_the_place_of_the_token(gateway, upstream, tmp_path, auth, header, value):
    gateway.provide(upstream.url, kept_in(tmp_path / "key", f"{SECRET}\n"), name=auth.name.lower(), auth=auth)
    _, token = gateway.grant(provider=auth.name.lower())
    gateway.ask(token, x_api_key="of the caller")
    (got,) = upstream.seen
    sent = {name.lower(): text for name, text in got.headers if name.lower() in ("x-api-key", "authorization")}
    assert sent == {header: value}


def login(ends: float) -> str:
    facts = {"accessToken": "oat-old", "refreshToken": "ort-old", "expiresAt": int(ends * 1000), "scopes": ["a", "b"]}
    return json.dumps({"claudeAiOauth": {**facts, "subscriptionType": "max"}, "other": 1})


def sent_keys(upstream) -> list[str]:
    return [text for one in upstream.seen for name, text in one.headers if name.lower() == "authorization"]


def test_a_login_of_claude_code_is_used_and_left_alone_as_long_as_it_is_good(gateway, upstream, tmp_path):
    source = kept_in(tmp_path / ".credentials.json", login(time.time() + 3600))
    before = (tmp_path / ".credentials.json").read_bytes()
    gateway.provide(upstream.url, source, name="good", auth=KeyStyle.BEARER)
    _, token = gateway.grant(provider="good")
    gateway.ask(token)
    assert sent_keys(upstream) == ["Bearer oat-old"]
    assert (tmp_path / ".credentials.json").read_bytes() == before


def test_a_login_that_ends_is_renewed_once_and_kept_for_the_person(gateway, upstream, tmp_path):
    place = tmp_path / ".credentials.json"
    source = kept_in(place, login(time.time() + 5))
    given = {"access_token": "oat-new", "refresh_token": "ort-new", "expires_in": 28800}
    asked = []

    def renew(exchange):
        asked.append(json.loads(exchange.body))
        exchange.reply(200, json.dumps(given).encode())

    renewal = Upstream()
    renewal.script = renew
    try:
        provider = {"name": "ends", "auth": KeyStyle.BEARER, "token_url": f"{renewal.url}/token"}
        gateway.provide(upstream.url, source, **provider)
        _, token = gateway.grant(provider="ends")
        for _ in range(3):
            gateway.ask(token)
    finally:
        renewal.close()
    assert sent_keys(upstream) == ["Bearer oat-new"] * 3
    ((told),) = asked
    assert (told["grant_type"], told["refresh_token"], told["scope"]) == ("refresh_token", "ort-old", "a b")
    kept = json.loads(place.read_text())
    assert kept["other"] == 1
    mine = kept["claudeAiOauth"]
    assert (mine["accessToken"], mine["refreshToken"], mine["subscriptionType"]) == ("oat-new", "ort-new", "max")
    assert mine["expiresAt"] / 1000 == pytest.approx(time.time() + 28800, abs=600)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("content", "answer", "sentence"),
    [
        (login(0), 400, "was refused (400); run `claude` and log in again."),
        (login(0), 200, "could not be renewed; check the network."),
        ('{"oauth": 1}', 200, "holds neither a key nor a login of Claude Code; run `claude` and log in."),
    ],
)
def test_a_login_that_cannot_be_used_is_said_in_one_sentence(gateway, upstream, tmp_path, content, answer, sentence):
    source = kept_in(tmp_path / ".credentials.json", content)
    renewal = Upstream()
    renewal.script = lambda exchange: exchange.reply(answer, b"[]")
    name = f"no{len(content)}-{answer}"
    try:
        gateway.provide(upstream.url, source, name=name, auth=KeyStyle.BEARER, token_url=renewal.url)
        _, token = gateway.grant(provider=name)
        status, _, said = gateway.refused(token)
    finally:
        renewal.close()
    assert status == 400
    assert said.endswith(sentence)
    assert "oat-old" not in said
    assert (tmp_path / ".credentials.json").read_text() == content


def test_a_provider_that_asks_for_no_key_gets_none(gateway, upstream):
    _, token = gateway.grant()
    gateway.ask(token)
    assert {name.lower() for name, _ in upstream.seen[0].headers} & {"x-api-key", "authorization"} == set()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_file_that_others_can_read_is_refused(gateway, upstream, tmp_path, mode):
    name = f"open{mode:o}"
    gateway.provide(upstream.url, kept_in(tmp_path / "key", SECRET, mode), name=name)
    run, token = gateway.grant(provider=name)
    status, kind, sentence = gateway.refused(token)
    assert (status, kind) == (400, "invalid_request_error")
    assert sentence == (
        f"legion: no key for provider {name}: the file {tmp_path / 'key'} must be yours and closed to others; "
        "run `chmod 600` on it."
    )
    assert gateway.entry(run).error == "no_key"
    assert upstream.seen == []
    # After the fix the next request works at once.
    (tmp_path / "key").chmod(0o600)
    assert gateway.ask(token)[0] == 200


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_somebody_else_is_refused(gateway, upstream, tmp_path):
    source = kept_in(tmp_path / "key", SECRET)
    os.chown(tmp_path / "key", 12345, 12345)
    gateway.provide(upstream.url, source, name="foreign")
    assert "must be yours" in gateway.refused(gateway.grant(provider="foreign")[1])[2]


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("nofile", KeySource(origin=KeyFrom.FILE, where="/nowhere/key"), "cannot be read (No such file or directory)"),
        ("folder", KeySource(origin=KeyFrom.FILE, where="/"), "must be yours and closed to others"),
        ("novar", KeySource(origin=KeyFrom.ENV, where="LEGION_TEST_UNSET"), "variable LEGION_TEST_UNSET in the"),
        ("fails", command("sh", "-c", f"echo {SECRET}; echo {SECRET} >&2; exit 3"), "sh ended with exit code 3"),
        ("silent", command("true"), "the output of true is empty"),
        ("wordy", command("echo", "two", SECRET), "holds more than the key"),
        ("missing", command("no-such-program"), "no-such-program is not installed"),
    ],
)
def test_a_key_that_cannot_be_had_is_told_in_one_sentence_without_it(gateway, upstream, name, source, expected):
    gateway.provide(upstream.url, source, name=name)
    status, kind, sentence = gateway.refused(gateway.grant(provider=name)[1])
    assert (status, kind) == (400, "invalid_request_error")
    assert sentence.startswith(f"legion: no key for provider {name}: ")
    assert expected in sentence
    assert SECRET not in sentence
    assert upstream.seen == []


def test_a_command_is_asked_once_for_many_requests_and_again_after_a_refusal(gateway, upstream, tmp_path):
    asked = tmp_path / "asked"
    gateway.provide(
        upstream.url, command("sh", "-c", f"echo x >> {asked}; echo {SECRET}$(wc -l < {asked})"), name="cmd"
    )
    _, token = gateway.grant(provider="cmd")
    threads = [threading.Thread(target=gateway.ask, args=(token,)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert asked.read_text() == "x\n"
    upstream.script = lambda exchange: exchange.reply(401, b'{"type":"error","error":{"type":"authentication_error"}}')
    assert gateway.ask(token)[0] == 401
    upstream.script = whole
    assert gateway.ask(token)[0] == 200
    assert [exchange.header("x-api-key") for exchange in upstream.seen] == [f"{SECRET}1"] * 6 + [f"{SECRET}2"]


def test_the_environment_and_the_keyring_of_the_gateway_are_asked(tmp_path, upstream):
    (tmp_path / "plain_keyring.py").write_text(
        "import os\n"
        "from keyring.backend import KeyringBackend\n"
        "class Keyring(KeyringBackend):\n"
        "    priority = 1\n"
        "    set_password = None\n"
        "    def get_password(self, service, username):\n"
        "        if username == 'broken':\n"
        "            raise RuntimeError(os.environ['PLANTED'])\n"
        "        return os.environ['PLANTED'] if (service, username) == ('legion', 'ring') else None\n"
    )
    sources = os.pathsep.join([str(tmp_path), *(path for path in sys.path if path.endswith("src"))])
    env = {"PLANTED": SECRET, "PYTHON_KEYRING_BACKEND": "plain_keyring.Keyring", "PYTHONPATH": sources}
    with started(tmp_path / "gateway", env=env) as (gateway, _):
        for name, key in {
            "env": KeySource(origin=KeyFrom.ENV, where="PLANTED"),
            "ring": KeySource(origin=KeyFrom.KEYRING),
        }.items():
            gateway.provide(upstream.url, key, name=name)
            assert gateway.ask(gateway.grant(provider=name)[1]) == (200, WHOLE)
        assert [exchange.header("x-api-key") for exchange in upstream.seen] == [SECRET] * 2
        for name, expected in {"empty": "is empty", "broken": "cannot be opened"}.items():
            gateway.provide(upstream.url, KeySource(origin=KeyFrom.KEYRING), name=name)
            status, _, sentence = gateway.refused(gateway.grant(provider=name)[1])
            assert (status, expected in sentence, SECRET in sentence) == (400, True, False)


def test_a_planted_key_shows_nowhere(tmp_path, upstream):
    """Whatever goes wrong, and although the provider repeats the key wherever it can."""
    echoed = f'{{"type":"error","error":{{"type":"{SECRET}","message":"bad key {SECRET}"}}}}'.encode()
    answers = [
        lambda exchange: exchange.reply(401, echoed, x_echo=SECRET, www_authenticate=f"Bearer {SECRET}"),
        lambda exchange: exchange.reply(500, echoed),
        lambda exchange: exchange.send(f"HTTP/1.1 200 {SECRET}\r\nbroken {SECRET}\r\n\r\n".encode()),
        lambda exchange: exchange.drop(),
        whole,
    ]
    with started(tmp_path / "gateway") as (gateway, child):
        source = kept_in(tmp_path / "key", SECRET)
        gateway.provide(upstream.url, source)
        for script in answers:
            upstream.script = script
            with gateway.asking(gateway.grant()[1]) as answer:
                shown = answer.read() + str(answer.getheaders()).encode() + answer.reason.encode()
            assert SECRET.encode() not in shown, shown
            assert upstream.seen[-1].header("x-api-key") == SECRET
        upstream.close()
        gateway.refused(gateway.grant()[1])
        for name in ("cmdline", "environ"):
            assert SECRET.encode() not in Path(f"/proc/{gateway.pid}/{name}").read_bytes()
        child.terminate()
        _, reply = child.communicate(timeout=60)
        assert SECRET.encode() not in reply
        kept = [path for path in gateway.folder.root.rglob("*") if path.is_file()]
        assert len(everything(gateway.folder)) == 6
        assert not [path for path in kept if SECRET.encode() in path.read_bytes()]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_other_programs_of_the_person_cannot_look_into_the_gateway(tmp_path):
    """The kernel gives what /proc shows of such a process to root and its group, whichever user runs it."""
    group = 12345 if os.geteuid() == 0 else None
    with started(tmp_path / "gateway", group=group) as (gateway, _):
        shown = Path(f"/proc/{gateway.pid}/mem").stat()
        assert (shown.st_uid, shown.st_gid) == (0, 0)


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("Upper", "https://a.example"),
        ("a/b", "https://a.example"),
        ("ok", "ftp://a.example"),
        ("ok", "https://"),
        ("ok", "https://user:pass@a.example"),
        ("ok", "https://a.example?key=1"),
    ],
)
def test_a_provider_that_makes_no_sense_cannot_be_defined(name, url):
    with pytest.raises(BadInput):
        Provider(name=name, url=url, key=KeySource(origin=KeyFrom.NONE))


@pytest.mark.parametrize("origin", [KeyFrom.FILE, KeyFrom.ENV, KeyFrom.COMMAND])
def test_a_key_without_a_place_cannot_be_defined(origin):
    with pytest.raises(BadInput):
        KeySource(origin=origin)
