"""[review] and [reviewer]: which changes are reviewed, and with which model or program."""

from __future__ import annotations

from dataclasses import dataclass

from legion.config.base.settings import choice, flag, text, texts, whole
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
