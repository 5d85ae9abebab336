"""A specification: the documents that a planner writes, stage by stage, before it plans. Pure.

Which stage is next follows from the documents that are stored. Each stage is a conversation of its own that reads the
documents before it, so the critic is not the author.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from enum import Enum

from legion.domain.plans.draft import PlanCriterion, PlanDraft, PlanTicket
from legion.domain.plans.plan import PlanState

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
    PlanState.FAILED: StageState.FAILED,
    PlanState.DROPPED: StageState.STOPPED,
}
PLAN = "plan"
"""The name of the last stage: the plan that is made of the documents."""


def stage_states(written: Collection[SpecStage], state: PlanState, *, planned: bool) -> dict[str, StageState]:
    """By name, in their order. `planned`: there is a draft."""
    done = {stage.value for stage in written} | ({PLAN} if planned else set())
    names = [*(stage.value for stage in SpecStage), PLAN]
    first = next((name for name in names if name not in done), None)
    current = _OF_PLAN.get(state, StageState.DONE)
    return {
        name: StageState.DONE if name in done else current if name == first else StageState.WAITING for name in names
    }


def next_stage(written: Collection[SpecStage]) -> SpecStage | None:
    """None: all documents are there, and the plan is made of them."""
    return next((stage for stage in SpecStage if stage not in written), None)


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
    final = documents.get(SpecStage.CRITICISE) or documents.get(SpecStage.WRITE, "")
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
