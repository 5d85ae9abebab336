"""[review], [reviewer], [planner], [plans], [liveness]: models that read, sizes, and when a run counts as stuck."""

from __future__ import annotations

from dataclasses import dataclass

from legion.config.base.settings import DAY, choice, flag, number, text, texts, whole
from legion.domain.plans.checks import MOST_FILES, MOST_LINES
from legion.domain.review.path_patterns import glob_fault
from legion.domain.tickets.spec import ReviewPolicy

_LONGEST_POINT = 300


def _point_fault(text: str) -> str | None:
    if not text.strip() or "\n" in text or len(text) > _LONGEST_POINT:
        return f"is no line of 1 to {_LONGEST_POINT} characters"
    return None


@dataclass(frozen=True, kw_only=True)
class ReviewSettings:
    """[review] in legion.toml."""

    policy: ReviewPolicy = choice(
        ReviewPolicy.OFF,
        help='Whether an independent reviewer reads changes before they land. "risky": those that look risky.',
    )
    paths: tuple[str, ...] = texts(
        allowed="a list of patterns for paths from the root of the repository",
        fault=glob_fault,
        help='Changes here are reviewed under "risky", too.',
    )
    rounds: int = whole(
        3, 1, 10, help="How many times reviewers may reject a change; after the last one you are asked."
    )
    approvals: int = whole(
        0, 0, 10, help="How many of its readers must approve a change, such as 2 of a team's 3. 0: all of them."
    )
    checklist: tuple[str, ...] = texts(
        allowed="a list of sentences",
        fault=_point_fault,
        help="What every reviewer must judge, apart from the ticket's criteria; an approval without it is refused.",
    )
    required: bool = flag(
        True, help="Whether a change waits for the approval. Without, it lands and the findings are shown."
    )


@dataclass(frozen=True, kw_only=True)
class ReviewerSettings:
    """[reviewer] in the person's own file."""

    model: str = text(
        "",
        allowed="a model, or empty",
        help="The reviewer's model. Empty: the strongest of `models.escalation` that the agent does not use.",
    )
    driver: str = text(
        "",
        allowed='"claude", the name of one of your [drivers.NAME], or empty',
        help="The reviewer's program. Empty: Claude Code.",
    )
    lessons: bool = flag(
        False, help="Whether a reader of the ticket's conversation words proposed lessons. Without, a rule does."
    )


@dataclass(frozen=True, kw_only=True)
class PlannerSettings:
    """[planner] in the person's own file."""

    model: str = text("", allowed="a model, or empty", help="The planner's model. Empty: as for other agents.")
    driver: str = text(
        "",
        allowed='"claude", the name of one of your [drivers.NAME], or empty',
        help="The planner's program. Empty: Claude Code.",
    )


@dataclass(frozen=True, kw_only=True)
class PlanSettings:
    """[plans] in legion.toml."""

    most_files: int = whole(MOST_FILES, 1, 1000, help="How many files a planned ticket may be expected to change.")
    split: bool = flag(
        True, help="Whether a planner proposes several tickets in place of one that failed because it is too large."
    )
    read_at_end: bool = flag(
        True, help="Whether a last reader holds the goal against what landed, when its last ticket has ended."
    )
    most_lines: int = whole(MOST_LINES, 1, 100_000, help="How many lines a planned ticket may be expected to change.")
    proof_seconds: int = whole(
        120, 0, 3600, help="Seconds in all for the proofs of a draft on the target, where each must fail. 0: not tried."
    )
    docs: str = text(
        "docs/specs",
        allowed="a folder of the repository, by its path from there",
        fits=lambda folder: bool(folder.strip("/")) and not glob_fault(folder) and not {"*", "?"} & set(folder),
        help="Where `legion plan --spec --keep-docs` lands the documents of a specification.",
    )


@dataclass(frozen=True, kw_only=True)
class WatchdogSettings:
    """In legion.toml."""

    on: bool = flag(True, help="Whether stuck runs are nudged, interrupted and replaced.")
    repeats: int = whole(
        5,
        2,
        1000,
        help="How often an agent must repeat a call with the same result, and no new files, to count as looping.",
    )
    hang: float = number(
        300.0,
        0.5,
        7 * DAY,
        unit="seconds",
        help="How long a tool may use no processor and move no byte before it counts as hanging.",
    )
    program: float = number(
        1800.0,
        0.5,
        7 * DAY,
        unit="seconds",
        help="The same for an agent that is a plain program, which may wait for a model of its own.",
    )
    silence: float = number(
        900.0,
        0.5,
        7 * DAY,
        unit="seconds",
        help="How long an agent may have no call, no working process and no model request.",
    )


@dataclass(frozen=True, kw_only=True)
class PersonalWatchdogSettings:
    """In the person's file."""

    watch: bool = flag(True, help="Whether the watchdog runs, in all projects.")
    every: float = number(5.0, 0.1, 3600, unit="seconds", help="How often the watchdog checks running agents.")
