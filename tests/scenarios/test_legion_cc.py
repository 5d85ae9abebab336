"""The routes of legion_cc answer as its tools expect, behind a token, and a stop really stops."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from legion.domain.events import EventKind
from legion.domain.tickets.ticket import Start
from legion.store import events
from legion.store.board import tickets
from tests.support.legion import Project, squad
from tests.support.office import PERSONS, Office, office
from tests.support.repository import CHECK, Repository

SNAPSHOT = (
    *("id", "prompt", "title", "context", "criteria", "status", "assigned_worker", "team_mode", "iteration"),
    *("max_iterations", "feedback", "summary", "elapsed_secs", "base_commit", "blocked_by", "merge_status"),
    *("structure_plan", "is_checkpoint"),
)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("orchestrate")) as one:
        yield one


class Tool:
    """One of legion_cc's, with a token."""

    def __init__(self, port: int, token: str) -> None:
        self._base = f"http://127.0.0.1:{port}/legion/orchestrate/"
        self._headers = {"Authorization": f"Bearer {token}"}

    def post(self, what: str, **body: object) -> tuple[int, dict[str, Any]]:
        answer = httpx2.post(self._base + what, json=body, headers=self._headers, verify=False)
        return answer.status_code, answer.json()

    def get(self, what: str) -> tuple[int, dict[str, Any]]:
        answer = httpx2.get(self._base + what, headers=self._headers, verify=False)
        return answer.status_code, answer.json()


def test_tickets_are_submitted_and_listed_in_its_shapes(here: Office):
    tool = Tool(here.port, PERSONS)
    said = tool.post(
        "submit",
        title="A",
        ticket="Make A.",
        context="ctx",
        criteria="crit",
        team_mode="backend_team",
        max_iterations=3,
        structure_plan="plan",
    )
    assert said[0] == 200
    first = said[1]["ticket_id"]
    assert set(said[1]) == {"ticket_id"}
    _, after = tool.post("submit", title="B", ticket="Make B.", blocked_by=[first], is_checkpoint=True)
    assert tool.post("submit", title="C", ticket="x", blocked_by=[4711]) == (
        400,
        {"error": "blocked_by references unknown ticket id 4711"},
    )
    long = "Do something that takes more than forty letters to say"
    _, third = tool.post("dispatch", ticket=long, worker_id=2)
    assert third["status"] == "dispatched"
    code, queue = tool.get("status")
    assert (code, queue["total"], queue["queued"], queue["working"], queue["done"], queue["error"]) == (
        200,
        3,
        3,
        0,
        0,
        0,
    )
    one, two, three = queue["tickets"]
    assert set(one) == set(SNAPSHOT)
    assert (one["prompt"], one["context"], one["max_iterations"], one["structure_plan"]) == (
        "Make A.",
        "ctx",
        3,
        "plan",
    )
    assert (two["blocked_by"], two["is_checkpoint"], two["id"]) == ([first], True, after["ticket_id"])
    assert (three["title"], three["merge_status"]) == (f"{long[:37]}...", "pending")
    code, found = tool.get(f"deps?ticket_id={two['id']}")
    (dependency,) = found["dependencies"]
    assert (code, found["ticket_id"], dependency["id"], dependency["status"]) == (200, two["id"], first, "queued")
    assert set(dependency) == {
        *("id", "title", "status", "merge_status", "summary", "diff_summary", "log_tail", "is_checkpoint")
    }
    for nobody in (first, 4711):
        assert tool.post("report", worker_id=nobody, status="done") == (400, {"error": "worker has no active ticket"})
    assert tool.post("stop", worker_id=first) == (200, {"status": "stopped"})
    assert tool.post("stop", ticket_id=first) == (200, {"status": "stopped"})
    assert tool.post("stop")[0] == 400
    assert tool.post("stop", ticket_id=4711)[0] == 404
    assert tool.post("stop-all") == (200, {"status": "all_stopped"})
    assert tool.get("status")[1]["error"] == 3


def test_an_agent_has_no_more_rights_there_than_elsewhere(here: Office):
    persons = Tool(here.port, PERSONS).post("submit", title="P", ticket="the person's")[1]["ticket_id"]
    agent = Tool(here.port, here.hire("agent").token)
    own = agent.post("submit", title="mine", ticket="mine")[1]["ticket_id"]
    assert agent.post("stop", ticket_id=persons)[0] == 403
    with here.context.store.write() as tx:
        for number in (persons, own):
            tickets.move(tx, number, Start("c" * 40))
    assert agent.post("report", worker_id=persons, status="done", summary="forged")[0] == 403
    assert agent.post("report", worker_id=own, status="done", summary="mine") == (200, {"status": "ok"})
    with here.context.store.read() as seen:
        refused = [event.data["asked"] for event in events.after(seen, 0) if event.kind is EventKind.REFUSED]
    assert refused == ["POST /legion/orchestrate/stop", "POST /legion/orchestrate/report"]
    assert agent.post("stop-all") == (200, {"status": "all_stopped"})
    assert here.person.ticket(persons).ticket.state == "working"
    assert here.person.ticket(own).ticket.state == "stopped"
    assert Tool(here.port, "guessed").get("status")[0] == 401


def test_a_stop_ends_the_agent_and_a_landed_ticket_tells_what_it_changed(tmp_path: Path):
    with squad(tmp_path) as one:
        project = one.adopt(Repository(tmp_path / "ada", CHECK))
        port = int(json.loads(one.data.daemon_record.read_text())["url"].rpartition(":")[2])
        tool = Tool(port, one.data.token.read_text().strip())
        done = project.dispatch("write", "printf 'one\\ntwo\\n' > new.txt; echo printed")
        project.until(done, "done")
        later = project.dispatch("wait", "sleep 600", after=[done])
        project.until(later, "working")
        assert tool.post("report", worker_id=later, status="done", summary="nearly")[1] == {"status": "ok"}
        (dependency,) = tool.get(f"deps?ticket_id={later}")[1]["dependencies"]
        assert dependency["merge_status"] == "merged"
        assert dependency["log_tail"] == "printed"
        assert dependency["diff_summary"] == [{"path": "new.txt", "status": "added", "additions": 2, "deletions": 0}]
        working = next(line for line in tool.get("status")[1]["tickets"] if line["id"] == later)
        assert (working["assigned_worker"], working["summary"]) == (later, "nearly")
        assert tool.post("stop", worker_id=later) == (200, {"status": "stopped"})
        _ended(project, later)


def _ended(project: Project, ticket: int) -> None:
    page = project.until_idle(ticket)
    assert page.ticket.state == "stopped"
    assert not [one for one in project.squad.processes() if "sleep 600" in " ".join(one.cmdline())]
