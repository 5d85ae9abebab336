"""The planner of service tests: plans whose answers are given, without a program."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from legion.domain.runs import Outcome
from legion.domain.tickets.ticket import Stop
from legion.jobs.plan import job
from legion.store.board import goals, tickets
from legion.store.work import runs
from legion.wire.plans import ApprovePlan, NewPlan, PlanApproved, PlanPage
from tests.support.office import Office


def ticket(key: str, *after: str | int, **fields: Any) -> dict[str, Any]:
    proven = [{"text": f"{key} works", "proof": "[test]"}]
    return {"key": key, "title": f"Make {key}", "after": list(after), "criteria": proven} | fields


TWO = {"summary": "Two steps.", "tickets": [ticket("schema", new_files=["db.sql"]), ticket("login", "schema")]}


_COUNT = count(1)


class Planner:
    """Stands for the planner's program: each answer is read and recorded as its run's final message."""

    def __init__(self, desk: Office) -> None:
        self.desk = desk

    def plan(self, *answers: object, **wanted: Any) -> PlanPage:
        """The board is empty before, and no other plan has its goal."""
        with self.desk.context.store.write() as tx:
            for one in tickets.live(tx):
                tickets.move(tx, one.id, Stop())
        goal = f"Users can log in. {next(_COUNT)}"
        page = self.desk.person.plan(NewPlan(cwd=self.desk.cwd, goal=goal, **wanted))
        return self.answer(page.plan.id, *answers)

    def answer(self, plan: str, *answers: object) -> PlanPage:
        context, id = self.desk.context, int(plan[1:])
        for given in answers:
            message = given if isinstance(given, str) else json.dumps(given)
            with context.store.write() as tx:
                job.begin(tx, id)
                now, run = goals.get(tx, id), next(run for run in runs.active(tx) if run.plan == id)
            end = job.read_answer(context, context.project(now.project), now, run, message)
            with context.store.write() as tx:
                runs.end(tx, run.id, Outcome.FINISHED)
                assert end.record is not None
                end.record(tx, now)
        return self.desk.person.plan_page(id)

    def approve(self, page: PlanPage, *keys: str, **wanted: Any) -> PlanApproved:
        return self.desk.person.approve_plan(int(page.plan.id[1:]), ApprovePlan(tickets=list(keys), **wanted))
