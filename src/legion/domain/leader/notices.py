"""Notices: which events give a leader a turn although no message waits for it. Most events do not."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from legion.domain.events import Event, EventKind
from legion.domain.leader.digest import ranges
from legion.domain.plans.plan import PlanState, plan_name

_DECIDED_BY_IT = frozenset(state.value for state in (PlanState.READY, PlanState.FAULTY, PlanState.FAILED))
_MOST_NAMED = 5


def notice(events: Sequence[Event], *, questions: Collection[int] = (), completed: Collection[str] = ()) -> str:
    """The text of the notice; empty where the leader need not act.

    It holds numbers and names of epics only: texts of agents would look like the person's. `questions` are those that
    it may answer, `completed` the epics whose last ticket has ended.
    """
    failed = [event.ticket for event in events if _is_failure(event) and event.ticket is not None]
    plans = {
        plan_name(number): str(event.data["to"])
        for event in events
        if event.kind is EventKind.PLAN_MOVED
        and event.data.get("to") in _DECIDED_BY_IT
        and isinstance(number := event.data.get("plan"), int)
    }
    parts = [f"tickets failed: {ranges(failed)}"] if failed else []
    parts += [f"plan {name} is {state}" for name, state in list(plans.items())[-_MOST_NAMED:]]
    parts += [f"questions for you: {ranges(questions)}"] if questions else []
    parts += [f"every ticket of the epic {name[:60]} has ended" for name in sorted(completed)[:_MOST_NAMED]]
    parts += ["the target fails its checks"] if any(one.kind is EventKind.BASELINE_RED for one in events) else []
    return f"The board needs you: {'; '.join(parts)}." if parts else ""


def _is_failure(event: Event) -> bool:
    return event.kind is EventKind.TICKET_MOVED and event.data.get("to") == "failed"
