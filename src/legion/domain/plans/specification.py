"""A specification: the documents that a planner writes, stage by stage, before it plans. Pure.

Which stage is next follows from the documents that are stored. Each stage is a conversation of its own that reads the
documents before it, so the critic is not the author.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from enum import Enum

from legion.domain.plans.draft import PlanCriterion, PlanDraft, PlanTicket
from legion.domain.plans.plan import PlanState
from legion.domain.text import count

LONGEST_DOCUMENT = 60_000
KEY = "specification"
"""The ticket that lands the documents."""
_TITLE = 100
_HEADING = re.compile(r"^#{1,6} \S", re.MULTILINE)


class SpecStage(Enum):
    GATHER = "gather"
    """What is asked for: requirements, what is out of scope, open questions."""
    RESEARCH = "research"
    """Which code it touches, how similar things are done there, what may go wrong."""
    WRITE = "write"
    """The specification."""
    CRITICISE = "criticise"
    """The specification again, corrected."""


class StageState(Enum):
    WAITING = "waiting"
    WORKING = "working"
    ASKING = "asking"
    """Its author asked the person."""
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


_OF_PLAN = {
    PlanState.PLANNING: StageState.WORKING,
    PlanState.ASKING: StageState.ASKING,
    PlanState.WRITTEN: StageState.ASKING,
    PlanState.FAILED: StageState.FAILED,
    PlanState.DROPPED: StageState.STOPPED,
}
PLAN = "plan"
"""The name of the last stage: the plan that is made of the documents."""


_SHORT = (SpecStage.WRITE, SpecStage.CRITICISE)


def stages(*, short: bool) -> tuple[SpecStage, ...]:
    return _SHORT if short else tuple(SpecStage)


def stage_states(
    written: Collection[SpecStage], state: PlanState, *, planned: bool, short: bool = False
) -> dict[str, StageState]:
    """By name, in their order. `planned`: there is a draft."""
    done = {stage.value for stage in written} | ({PLAN} if planned else set())
    names = [*(stage.value for stage in stages(short=short)), PLAN]
    first = next((name for name in names if name not in done), None)
    current = _OF_PLAN.get(state, StageState.DONE)
    return {
        name: StageState.DONE if name in done else current if name == first else StageState.WAITING for name in names
    }


def next_stage(written: Collection[SpecStage], *, short: bool = False) -> SpecStage | None:
    """None: all documents are there, and the plan is made of them."""
    return next((stage for stage in stages(short=short) if stage not in written), None)


def last_of(documents: Collection[SpecStage]) -> SpecStage:
    """The one that holds the specification as it is now."""
    return SpecStage.CRITICISE if SpecStage.CRITICISE in documents else SpecStage.WRITE


def fault(text: str) -> str:
    """Why a final message is no document; empty if it is one."""
    if not text.strip():
        return "the answer is empty, and the document is expected in it"
    if not _HEADING.search(text):
        return "the answer has no heading, and a document in Markdown is expected"
    if len(text) > LONGEST_DOCUMENT:
        return f"the document has {len(text):,} characters, and {LONGEST_DOCUMENT:,} are the most"
    return ""


def kept_files(folder: str, plan: str, documents: Mapping[SpecStage, str]) -> dict[str, str]:
    """The files that land: the specification, and the notes that it was written from."""
    name = f"{folder.strip('/')}/{plan}"
    notes = [documents[stage].strip() for stage in (SpecStage.GATHER, SpecStage.RESEARCH) if stage in documents]
    final = documents.get(last_of(documents), "")
    found = {f"{name}.md": final.strip(), f"{name}-notes.md": "\n\n".join(notes)}
    return {path: f"{text}\n" for path, text in found.items() if text}


def with_documents(draft: PlanDraft, goal: str, files: Collection[str]) -> PlanDraft:
    """The draft with a first ticket that lands the documents; the tickets that could start come after it."""
    own = PlanTicket(
        key=KEY,
        title=f"Specification: {' '.join(goal.split())[:_TITLE]}",
        text="Legion writes these documents itself: no agent is started.",
        new_files=tuple(files),
        criteria=(PlanCriterion(text="The documents are in the repository", why_not="Legion writes them"),),
    )
    others = [one for one in draft.tickets if one.key != KEY]
    return replace(draft, tickets=(own, *(one if one.after else replace(one, after=(KEY,)) for one in others)))


# Chooses by rule, without a model, how much is written before a goal is planned.


class Depth(Enum):
    NONE = "none"
    SHORT = "short"
    """Written and criticised."""
    FULL = "full"
    """Requirements and research come before that."""
    AUTO = "auto"
    """One of the others, by `depth_of`."""


_RISKS = re.compile(
    r"(?i)\b(migrat\w*|secur\w*|auth\w*|login|password\w*|encrypt\w*|permission\w*|privacy|payment\w*|billing"
    r"|invoice\w*|schema\w*|concurren\w*|backwards?[- ]compatib\w*|protocol\w*)\b"
)
_ITEM = re.compile(r"(?m)^\s*(?:[-*+]|\d+[.)])\s+(?=\S)")
_SENTENCE = re.compile(r"[^.;!?\s].*?(?:[.;!?](?=\s|$)|\Z)", re.DOTALL)
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?")
_SHORT_FROM, _FULL_FROM = 3, 6


def depth_of(goal: str, exists: Callable[[str], bool]) -> tuple[Depth, str]:
    """How much to write before such a goal is planned, and why. `exists`: whether the target has that file or folder.

    Each of its points counts one, each file and package that it names one, each 60 words one, and a word of risk three.
    """
    points = max(len(_ITEM.findall(goal)), len(_SENTENCE.findall(_ITEM.sub("", goal))))
    named = {one.rstrip("./") for one in _PATH.findall(goal) if ("/" in one or "." in one) and exists(one.rstrip("."))}
    risks = sorted({one.lower() for one in _RISKS.findall(goal)})
    words = len(goal.split())
    weight = points + len(named) + words // 60 + (3 if risks else 0)
    depth = Depth.FULL if weight >= _FULL_FROM else Depth.SHORT if weight >= _SHORT_FROM else Depth.NONE
    why = [
        f"{count(points, 'point')}, {count(words, 'word')}",
        f"names {', '.join(sorted(named)[:4])}" if named else "",
        f"says {', '.join(risks[:4])}" if risks else "",
    ]
    return depth, "; ".join(filter(None, why))
