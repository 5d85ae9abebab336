"""A GitHub App as Legion's account: its JWT, its tokens that expire, and one issue's whole way with them."""

from __future__ import annotations

import subprocess
import time
from functools import lru_cache
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from legion.forge import github
from legion.forge.app_tokens import AppTokens
from legion.forge.errors import ForgeRefused
from legion.forge.github import GitHub
from legion.service.forge import connections
from legion.wire.errors import BadInput
from legion.wire.forge import AddForge
from legion.wire.projects import Where
from tests.forge.desk import Desk
from tests.support.github_app import HostedApp, StandIn

GRANTED = {"contents": "write", "issues": "write", "pull_requests": "write", "checks": "read", "statuses": "write"}


class Clock:
    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


@lru_cache
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem() -> str:
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return key().private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def install(forge: StandIn, clock: Clock, **different: object) -> HostedApp:
    facts = {"repository": "acme/shop", "granted": GRANTED} | different
    app = HostedApp(id="Iv1.app", slug="legion", public_key=key().public_key(), clock=clock, **facts)  # type: ignore[arg-type]
    forge.app = app
    forge.hosted.rights[app.login] = "write"
    return app


def tokens(forge: StandIn, clock: Clock, app: str = "Iv1.app") -> AppTokens:
    return AppTokens(github.api_of(forge.url), "acme/shop", app, pem(), accept=github.ACCEPT, clock=clock)


def test_another_implementation_accepts_the_jwt(stand_in: StandIn):
    claims = jwt.decode(tokens(stand_in, Clock())._jwt(), key().public_key(), algorithms=["RS256"])
    assert claims["iss"] == "Iv1.app"
    assert claims["exp"] - claims["iat"] == 600


def test_a_token_is_used_until_shortly_before_it_expires(stand_in: StandIn):
    clock = Clock()
    app = install(stand_in, clock)
    source = tokens(stand_in, clock)
    forge = GitHub("acme/shop", source, url=stand_in.url, clock=clock)
    found = forge.repository()
    assert (found.login, found.may_push) == ("legion[bot]", True)
    first = source.token()
    clock.now += 3200
    assert source.token() == first
    clock.now += 200
    assert source.token() != first
    assert forge.branch_tip("main") == stand_in.hosted.tip("main")
    assert len(app.sold) == 2


@pytest.mark.parametrize(
    ("different", "app", "sentence"),
    [
        ({}, "Iv1.other", "does not accept the key of app Iv1.other"),
        ({"repository": "acme/else"}, "Iv1.app", "is not installed in acme/shop"),
        ({"granted": GRANTED | {"contents": "read"}}, "Iv1.app", "has too few rights in acme/shop"),
    ],
    ids=["wrong app", "not installed", "too few rights"],
)
def test_one_sentence_says_what_the_app_lacks(stand_in: StandIn, different, app, sentence):
    install(stand_in, Clock(), **different)
    with pytest.raises(ForgeRefused, match=sentence):
        tokens(stand_in, Clock(), app).token()


def test_an_issue_becomes_a_merged_pull_request_of_the_app(desk: Desk, tmp_path: Path):
    app = install(desk.forge, Clock())
    (tmp_path / "app.pem").write_text(pem())
    wanted = AddForge(
        cwd=desk.cwd, kind="github", address="acme/shop", url=desk.forge.url, app=app.id, key_file=f"{tmp_path}/app.pem"
    )
    connections.add(desk.context, wanted)
    assert connections.try_out(desk.context, Where(cwd=desk.cwd)).message.startswith("acme/shop answers as legion[bot]")
    assert [one.key for one in connections.listed(desk.context).forges] == ["of app Iv1.app"]
    number = desk.opened()
    assert desk.forge.hosted.issues[number].author == app.login
    assert [one.author for one in desk.forge.hosted.issues[1].comments] == [app.login]
    desk.look()
    assert len(desk.forge.hosted.issues[1].comments) == 1, "its own comment is found again"
    desk.forge.hosted.merge(number, by="wanda")
    desk.round()
    desk.round()
    assert desk.state() == "done"


def test_the_key_of_an_app_can_be_kept_and_is_deleted_with_the_forge(desk: Desk):
    app = install(desk.forge, Clock())
    facts = {"cwd": desk.cwd, "kind": "github", "address": "acme/shop", "url": desk.forge.url, "app": app.id}
    connections.add(desk.context, AddForge(**facts, key=pem()))  # type: ignore[arg-type]
    kept = desk.data.keys / "forge-1"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert desk.look() == ""
    connections.remove(desk.context, desk.cwd)
    assert not kept.exists()
    for different in ({}, {"key": "x", "key_file": "y"}, {"key": "x", "gh": True}):
        with pytest.raises(BadInput, match="An app needs its private key"):
            connections.add(desk.context, AddForge(**facts, **different))  # type: ignore[arg-type]
    with pytest.raises(ForgeRefused, match="private key of the app cannot be read"):
        connections.add(desk.context, AddForge(**facts, key="x"))  # type: ignore[arg-type]


def test_openssl_accepts_the_signature(stand_in: StandIn, tmp_path: Path):
    signed, _, signature = tokens(stand_in, Clock())._jwt().rpartition(".")
    public = (
        key().public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    (tmp_path / "public.pem").write_bytes(public)
    (tmp_path / "signature").write_bytes(jwt.utils.base64url_decode(signature))
    words = ("openssl", "dgst", "-sha256", "-verify", "public.pem", "-signature", "signature")
    done = subprocess.run(words, cwd=tmp_path, input=signed.encode(), capture_output=True, check=False)
    assert b"Verified OK" in done.stdout
