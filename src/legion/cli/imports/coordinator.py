"""Reads claude-coordinator's `coordinator.yml`: settings that Legion has are shown, the rest is left out with a reason.

Its work is GitHub issues, which are no part of the file: `legion import` reads `gh issue list --json`, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from legion.cli.imports.findings import (
    Findings,
    FoundMachine,
    FoundSetting,
    LeftOut,
    UnreadableSource,
    items,
    machine_word,
    table,
    text,
    text_of,
    texts,
    toml_text,
    yaml_of,
)

TOOL = "claude-coordinator"
_CODE = "code travels from the head to its machines: no checkout is needed there"
_ADDRESS = "a machine dials in to the head, which needs no address of it: run the line of its invitation there"


def places(home: Path, cwd: Path) -> list[Path]:
    """In the order in which coord looks."""
    named = os.environ.get("COORD_CONFIG")
    return [*([Path(named)] if named else []), home / ".coord/coordinator.yml", cwd / "coordinator.yml"]


def read(file: Path, cwd: Path) -> Findings:
    """`cwd` is in the project; only the settings of its repository are shown."""
    whole = yaml_of(text_of(file), str(file))
    if not isinstance(whole, Mapping):
        raise UnreadableSource(f"{file} holds no table at its top, so it is no coordinator.yml.")
    found: list[FoundSetting | FoundMachine | LeftOut] = []
    readers = {
        "repos": lambda value: _repos(value, cwd),
        "machines": _machines,
        "concurrency": _concurrency,
        "models": _models,
        "reviews": _reviews,
        "smoke_tests": _smoke_tests,
    }
    for key, value in whole.items():
        found += readers[key](value) if key in readers else _other(str(key))
    return Findings(
        tool=TOOL,
        place=str(file),
        machines=tuple(one for one in found if isinstance(one, FoundMachine)),
        settings=tuple(one for one in found if isinstance(one, FoundSetting)),
        left_out=tuple(one for one in found if isinstance(one, LeftOut)),
    )


Found = Iterator[FoundSetting | FoundMachine | LeftOut]


def _setting(origin: str, file: str, name: str, line: str) -> FoundSetting:
    return FoundSetting(origin=origin, file=file, table=name, line=line)


def _repos(value: object, cwd: Path) -> Found:
    entries = value.items() if isinstance(value, Mapping) else ((None, one) for one in items(value))
    for key, given in entries:
        one = table(given)
        name = text(one.get("name")) or text(key)
        if name != cwd.name and text(one.get("github")).rpartition("/")[2] != cwd.name:
            yield LeftOut(what=f"repos: {name}", why="it is another repository: run `legion import` there, too")
            continue
        for word, check in (("build_command", "build"), ("test_command", "test"), ("ci_command", "ci")):
            if command := text(one.get(word)):
                origin = f"repos.{name}.{word}"
                yield _setting(origin, "legion.toml", f"checks.{check}", f"run = {toml_text(command)}")
        if others := texts(one.get("depends_on")):
            listed = ", ".join(map(toml_text, others))
            yield _setting(f"repos.{name}.depends_on", "legion.toml", "project", f"depends_on = [{listed}]")
        for word, why in _REPOSITORY.items():
            if one.get(word):
                yield LeftOut(what=f"repos.{name}.{word}", why=why)


_REPOSITORY = {
    "default_branch": "Legion takes the branch that is checked out at `legion init`",
    "develop_branch": "Legion takes the branch that is checked out at `legion init`",
    "run_command": "nothing is started for a person to try",
    "artifact_paths": "changes travel as commits; artifacts stay in their worktree",
    "worker_permissions": "agents are limited by the sandbox; see [claude] and [sandbox] in your own file",
    "coordinator_only_files": "write them into `protected.paths` of legion.toml",
    "reference_repos": "write them into `sandbox.read` of your own file",
    "provider": "`legion provider add` and `legion provider route` say which provider answers",
}


def _machines(value: object) -> Found:
    entries = value.items() if isinstance(value, Mapping) else ((None, one) for one in items(value))
    for key, given in entries:
        one = table(given)
        name = text(one.get("name")) or text(key) or "a machine"
        if _is_here(one):
            yield from _this_machine(name, one)
        else:
            yield from _other_machine(name, one)


def _other_machine(name: str, one: Mapping[str, Any]) -> Found:
    most = one.get("max_workers")
    yield FoundMachine(
        origin=f"machines.{name}",
        name=machine_word(name) or "machine",
        labels=tuple(dict.fromkeys(word for given in texts(one.get("capabilities")) if (word := machine_word(given)))),
        slots=min(256, max(1, most)) if isinstance(most, int) and not isinstance(most, bool) else None,
        quiet_hours=_hours(one.get("quiet_hours")),
    )
    if one.get("host"):
        yield LeftOut(what=f"machines.{name}.host", why=_ADDRESS)
    if one.get("repo_paths") or one.get("repos"):
        yield LeftOut(what=f"machines.{name}.repo_paths", why=_CODE)


def _hours(given: object) -> str:
    """`22:00-07:00`, also from a table with a start and an end."""
    times = table(given)
    if times:
        return "-".join(filter(None, (text(times.get("start")), text(times.get("end")))))
    return text(given)


def _is_here(one: Mapping[str, Any]) -> bool:
    host = text(one.get("host"))
    return host in ("localhost", "127.0.0.1", "::1") or host.partition(".")[0] == os.uname().nodename.partition(".")[0]


def _this_machine(name: str, one: Mapping[str, Any]) -> Found:
    if isinstance(most := one.get("max_workers"), int):
        yield _setting(f"machines.{name}.max_workers = {most}", "config.toml", "daemon", f"slots = {max(1, most)}")
    if quiet := _hours(one.get("quiet_hours")):
        yield _setting(f"machines.{name}.quiet_hours", "config.toml", "rhythm", f"quiet = {toml_text(quiet)}")
    if texts(one.get("capabilities")):
        yield LeftOut(what=f"machines.{name}.capabilities", why=_OWN_LABELS)
    if one.get("repo_paths") or one.get("repos"):
        yield LeftOut(what=f"machines.{name}.repo_paths", why="a project is its folder: run `legion init` in each")


_OWN_LABELS = "labels are for other machines; what asks for none also runs on this one"


def _concurrency(value: object) -> Found:
    one = table(value)
    for key, given in one.items():
        origin = f"concurrency.{key} = {text(given)}"
        match key:
            case "max_workers" if isinstance(given, int):
                yield _setting(origin, "legion.toml", "agents", f"parallel = {min(64, max(1, given))}")
            case "stagger_seconds" if isinstance(given, (int, float)):
                yield _setting(origin, "config.toml", "rhythm", f"stagger = {given}")
            case "max_retries" if isinstance(given, int):
                yield _setting(origin, "legion.toml", "agents", f"attempts = {min(20, max(1, given + 1))}")
            case "first_output_timeout" if isinstance(given, (int, float)):
                yield _setting(origin, "legion.toml", "liveness", f"silence = {given}")
            case "backoff_base" | "auto_reassign" | "stale_threshold":
                yield LeftOut(what=origin, why="Legion retries by itself, and a lost run resumes as the same attempt")
            case _:
                yield LeftOut(what=origin, why="Legion has no such setting")


def _models(value: object) -> Found:
    one = table(value)
    if default := text(one.get("default")):
        yield _setting(f"models.default = {default}", "config.toml", "claude", f"model = {toml_text(default)}")
    if ladder := texts(one.get("escalation")):
        listed = ", ".join(map(toml_text, ladder))
        yield _setting("models.escalation", "config.toml", "models", f"escalation = [{listed}]")
    labels = {text(label): text(model) for label, model in table(one.get("labels")).items() if text(model)}
    if labels:
        listed = ", ".join(f"{toml_text(label)} = [{toml_text(model)}]" for label, model in labels.items())
        yield _setting("models.labels", "config.toml", "models", f"by_label = {{{listed}}}")
    for key in one:
        if key not in ("default", "escalation", "labels"):
            yield LeftOut(what=f"models.{key}", why="Legion has no such setting")


def _reviews(value: object) -> Found:
    one = table(value)
    if "enabled" in one:
        policy = "always" if one["enabled"] is True else "off"
        yield _setting(f"reviews.enabled = {text(one['enabled']) or one['enabled']}", "legion.toml", "review",
                       f'policy = "{policy}"')  # fmt: skip
    if isinstance(needed := one.get("require_approval"), bool):
        yield _setting(
            f"reviews.require_approval = {needed}", "legion.toml", "review", f"required = {str(needed).lower()}"
        )
    if points := [line.strip().lstrip("-*[] ") for line in text(one.get("checklist")).splitlines() if line.strip()]:
        listed = ", ".join(map(toml_text, points))
        yield _setting("reviews.checklist", "legion.toml", "review", f"checklist = [{listed}]")
    for key in one:
        if key == "repo_overrides":
            yield LeftOut(what="reviews.repo_overrides", why="`checklist` in [review] of each repository's legion.toml")
        elif key not in ("enabled", "require_approval", "checklist"):
            yield LeftOut(what=f"reviews.{key}", why="reviewers start by themselves after the proofs; teams name them")


def _smoke_tests(value: object) -> Found:
    one = table(value)
    if command := text(one.get("default_command")):
        yield _setting("smoke_tests.default_command", "legion.toml", "checks.smoke", f"run = {toml_text(command)}")
        if isinstance(seconds := one.get("timeout_seconds"), (int, float)):
            yield _setting("smoke_tests.timeout_seconds", "legion.toml", "checks.smoke", f"timeout = {seconds}")
    for key in one:
        if key not in ("default_command", "timeout_seconds"):
            why = _LABELS if key == "capability_rules" else "checks run on every candidate"
            yield LeftOut(what=f"smoke_tests.{key}", why=why)


_LABELS = "a ticket names the label of the machines that it may run on: `legion dispatch --on LABEL`"


_OTHERS = {
    "hooks": "[hooks] of your own file has done, failed, question and all_done; write the commands there",
    "pipeline": "checks, review and landing follow each other by themselves",
    "usage_gate": "[governor] of your own file delays new runs near a limit",
    "budget": "[budgets] of your own file limits money",
    "dispatch": "[plans] of legion.toml limits the size of a ticket",
    "merge": "the merge queue lands by itself",
    "notifications": "[notify] of your own file",
}


def _other(key: str) -> Found:
    yield LeftOut(what=key, why=_OTHERS.get(key, "Legion has no such setting"))
