"""[protection], [questions], [models] and [acceptance] in the person's file: changes that need more than passing
checks.

Data only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from legion.config.base.settings import (
    DAY,
    NAME,
    REQUIRED,
    Unfit,
    choice,
    flag,
    number,
    plain_text,
    setting,
    text,
    texts,
    whole,
)
from legion.domain.review.path_patterns import glob_fault


class GuardMode(Enum):
    ASK = "ask"
    """A change of protected files waits for the person."""
    OFF = "off"
    """It lands like any other."""


@dataclass(frozen=True, kw_only=True)
class ProtectionSettings:
    mode: GuardMode = choice(
        GuardMode.ASK, help='What stops a change of protected files or weakened tests. "off": nothing.'
    )
    allow: tuple[str, ...] = texts(
        allowed="a list of patterns for paths from the root of the repository",
        fault=glob_fault,
        help="Paths that every ticket of every project may touch, as if it declared them.",
    )
    most_files: int = whole(10_000, 0, 10_000_000, help="A change of more files than this waits for you. 0: no limit.")
    file_mb: float = number(
        50.0, 0, 1_000_000, unit="megabytes", help="A change that adds a larger file waits for you. 0: no limit."
    )
    secrets: bool = flag(
        True, help="Whether a change with keys, tokens or passwords in it waits for you, in any of its commits."
    )
    trial: bool = flag(
        True,
        help="Whether checks are tried with broken code before changes land on them; one that stays green is asked "
        "about.",
        former="canary",
    )


@dataclass(frozen=True, kw_only=True)
class QuestionSettings:
    answer_within: float = number(
        86_400.0, 1, 30 * DAY, unit="seconds", help="How long a question about a change waits before it counts as a no."
    )


def _ladders(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, Mapping):
        raise Unfit(value)
    for label, models in value.items():
        if not NAME.fullmatch(label):
            raise Unfit(label, "is no label: at most 40 letters, digits, dots, dashes and underscores")
        if not isinstance(models, list) or not models:
            raise Unfit(models, f"must be a list of models for {label}, the weakest first")
        for name in models:
            if not plain_text(name).strip():
                raise Unfit(name, "is no name of a model")
    return tuple((label, tuple(models)) for label, models in value.items())


@dataclass(frozen=True, kw_only=True)
class ModelLadder:
    """The ladder of a ticket for Claude Code whose attempts are used up."""

    escalation: tuple[str, ...] = texts(
        ("haiku", "sonnet", "opus"),
        allowed="a list of models, the weakest first",
        fault=lambda name: None if name.strip() else "is no name of a model",
        help="Models for further attempts where a ticket's attempts are used up: those above its own. `@codex` or "
        "`@codex gpt-5` is another program. Empty: none.",
    )
    by_label: tuple[tuple[str, tuple[str, ...]], ...] = setting(
        (),
        allowed="a table of labels and lists of models",
        help="Separate ladders for tickets with a label: they start with its first model.",
        read=_ladders,
        show=lambda ladders: {label: list(models) for label, models in ladders},
    )
    learn: bool = flag(
        False,
        help="Whether a ticket that names neither program nor model gets those that landed most of such tickets here.",
    )
    fresh_eyes: bool = flag(True, help="Whether a new conversation, with a summary of what was tried, comes first.")


def _folder(value: object) -> Path | None:
    words = plain_text(value)
    if words and not words.startswith(("/", "~/")):
        raise Unfit(value)
    return Path(words).expanduser() if words else None


class AcceptanceNetwork(Enum):
    OPEN = "open"
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """One [acceptance.NAME]."""

    run: str = text(
        REQUIRED,
        allowed="a command",
        fits=lambda command: bool(command.strip()),
        help="A shell command that runs in a tree of the built result; exit code 0 means that all is well.",
    )
    folder: Path | None = setting(
        None,
        allowed="a folder that starts with / or ~/, or empty",
        help="What it reads outside the repository; its variable LEGION_ACCEPTANCE names it. No agent sees it.",
        read=_folder,
        show=lambda folder: str(folder) if folder else "",
    )
    timeout: float = number(600.0, 1, DAY, unit="seconds", help="How long it may take before it counts as failed.")
    network: AcceptanceNetwork = choice(
        AcceptanceNetwork.NONE,
        help='"none": only a loopback of its own. "open": as `sandbox.network`; code under test can send what it sees.',
    )
