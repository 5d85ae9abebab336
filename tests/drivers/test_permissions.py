"""Which requests of a program are allowed, denied or put to a person."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from legion.drivers.acp.client import PermissionQuery, PermissionVerdict, Policy, decide

ALLOW, ASK, DENY = PermissionVerdict.ALLOW, PermissionVerdict.ASK, PermissionVerdict.DENY
TREE = Path("/trees/one")
POLICY = Policy(mode="acceptEdits", allowed=(), sandboxed=False, asks=True, tree=TREE)
KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")


def run(command: str) -> PermissionQuery:
    return PermissionQuery(kind="execute", command=command)


def edit(*paths: str) -> PermissionQuery:
    return PermissionQuery(kind="edit", paths=paths)


@pytest.mark.parametrize("kind", KINDS)
def test_in_a_sandbox_everything_but_another_mode_is_allowed(kind: str):
    wanted = ASK if kind == "switch_mode" else ALLOW
    assert decide(PermissionQuery(kind=kind), replace(POLICY, sandboxed=True)) is wanted


@pytest.mark.parametrize(
    ("request_", "wanted"),
    [
        (PermissionQuery(kind="read", paths=("/trees/one/a",)), ALLOW),
        (PermissionQuery(kind="read", paths=("/etc/passwd",)), ASK),
        (PermissionQuery(kind="read", paths=("../other/a",)), ASK),
        (edit("/trees/one/a", "b/c"), ALLOW),
        (edit("/trees/one/../two/a"), ASK),
        (edit("/trees/onemore/a"), ASK),
        (edit(), ASK),
        (run("make"), ASK),
        (PermissionQuery(kind="fetch", url="https://example.org"), ASK),
        (PermissionQuery(kind="other"), ASK),
    ],
)
def test_without_a_sandbox_only_the_worktree_may_change(request_: PermissionQuery, wanted: PermissionVerdict):
    assert decide(request_, POLICY) is wanted
    without = DENY if wanted is ASK else wanted
    assert decide(request_, replace(POLICY, asks=False)) is without


@pytest.mark.parametrize(
    ("rule", "request_", "matches"),
    [
        ("Bash", run("anything; at all"), True),
        ("Bash(make *)", run("make test"), True),
        ("Bash(make *)", run("make"), True),
        ("Bash(make:*)", run("make test"), True),
        ("Bash(make *)", run("makeshift"), False),
        ("Bash(make *)", run("make test; rm -rf /"), False),
        ("Bash(make *)", run("make $(rm -rf /)"), False),
        ("Bash(make *)", run("make\nrm -rf /"), False),
        ("Bash(a; b)", run("a; b"), True),
        ("Bash(make)", run("make test"), False),
        ("Edit", edit("/etc/x"), True),
        ("Write", edit("/etc/x"), True),
        ("Edit(//etc/x)", edit("/etc/x"), True),
        ("Edit(//etc/*)", edit("/etc/../root/x"), False),
        ("Edit(//etc/x)", edit("/etc/x", "/etc/y"), False),
        ("WebFetch(domain:example.org)", PermissionQuery(kind="fetch", url="https://example.org/a"), True),
        ("WebFetch(domain:example.org)", PermissionQuery(kind="fetch", url="https://example.com/a"), False),
        ("Bash", edit("/etc/x"), False),
        ("nonsense(", run("make"), False),
    ],
)
def test_a_rule_of_the_settings_allows_exactly_what_it_names(rule: str, request_: PermissionQuery, matches: bool):
    assert (decide(request_, replace(POLICY, mode="default", allowed=(rule,), asks=False)) is ALLOW) == matches


@pytest.mark.parametrize(("kind", "sandboxed", "asks"), list(product(KINDS, (True, False), (True, False))))
def test_modes(kind: str, sandboxed: bool, asks: bool):
    one = PermissionQuery(kind=kind, paths=("/trees/one/a",))
    policy = replace(POLICY, sandboxed=sandboxed, asks=asks)
    assert decide(one, replace(policy, mode="bypassPermissions")) is ALLOW
    assert decide(one, replace(policy, mode="dontAsk")) is (ALLOW if kind == "think" else DENY)
    reads = kind in ("read", "search", "think")
    assert decide(one, replace(policy, mode="default")) is (ALLOW if reads else ASK if asks else DENY)


def test_a_request_is_read_from_what_programs_send():
    one = PermissionQuery.of("execute", {"cmd": "ls", "path": "a"}, ["b"])
    assert (one.command, one.paths, one.rule) == ("ls", ("b", "a"), "Bash(ls)")
    assert PermissionQuery.of("other", "text", []).rule == ""
