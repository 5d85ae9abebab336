"""[planner] and [plans]: the model and program of planners, and how large a planned ticket may be."""

from __future__ import annotations

from dataclasses import dataclass

from legion.config.base.settings import flag, text, whole
from legion.domain.plans.checks import MOST_FILES, MOST_LINES
from legion.domain.review.path_patterns import glob_fault


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
