"""A service in memory, for tests of the api and the command line: as small as can be, and as strict as the real one."""

from __future__ import annotations

import hashlib
import threading
import time
from dataclasses import replace

from legion.domain.errors import BadInput, NotFound, Retryable, StateConflict
from legion.wire.projects import (
    AddProject,
    CollectResult,
    Config,
    DaemonLine,
    Doctor,
    DoctorFinding,
    Done,
    Graph,
    ProjectAdded,
    ProjectLine,
    SettingLine,
    Status,
    Trust,
    Trustable,
    TrustText,
    WaitState,
    Where,
    WorktreeLine,
    WorktreeList,
)
from legion.wire.tickets import (
    Acted,
    Action,
    Diff,
    Dispatch,
    Dispatched,
    EventLine,
    LogText,
    ReceiptLine,
    RunLine,
    TicketLine,
    TicketPage,
)
from tests.api.standin_models import ModelsStandIn
from tests.api.standin_staff import StaffStandIn
from tests.api.standin_teams import TeamsStandIn
from tests.api.standin_work import WorkStandIn

COMMIT = "3f2a1c9d" * 5
OLD = "0123abcd" * 5


def a_ticket(id: int, title: str = "", state: str = "queued", **told: object) -> TicketLine:
    base = TicketLine(
        id=id,
        project="shop",
        title=title or f"Ticket {id}",
        state=state,
        after=[],
        attempt=0,
        max_attempts=5,
        checkpoint=False,
        epic="",
        priority=0,
        reason="",
        unchecked=False,
        held_up_by=[],
        created_at=1000.0 + id,
        moved_at=2000.0 + id,
    )
    return replace(base, **told)  # type: ignore[arg-type]


def a_text(place: str, text: str, *, trusted: bool) -> TrustText:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return TrustText(place=place, file="/shop/legion.toml", hash=digest, text=text, trusted=trusted)


class StandIn(ModelsStandIn, StaffStandIn, TeamsStandIn, WorkStandIn):
    """Tickets and events in lists. `trouble` is raised by everything that is asked next."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """As new; a server that holds it goes on."""
        for reset in (self.reset_staff, self.reset_models, self.reset_teams, self.reset_work):
            reset()
        self.tickets: dict[int, TicketLine] = {}
        self.log_text = ""
        self.log_ended = True
        self.has_run = True
        self.diff_text = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"
        self.receipts: list[ReceiptLine] = []
        self.cause = ""
        self.runs: list[RunLine] = []
        self.texts: dict[int, str] = {}
        self.trouble: BaseException | None = None
        self.findings = [DoctorFinding(name="git", ok=True, detail="2.39.5")]
        self.asked: list[str] = []
        self.requests: dict[str, Dispatched] = {}
        self.dispatched: list[Dispatch] = []
        self.feedback: list[str] = []
        self.config_texts = [a_text("landed", '[checks.test]\nrun = "make test"\n', trusted=False)]
        self.trusted: list[str] = []
        self.being_checked = False
        """Commits of the person, so that `collect` says not now."""
        self.told_to_wait = threading.Event()
        self.down = threading.Event()
        self.waiting = threading.Semaphore(0)
        """Released each time somebody begins to wait."""
        self._news = threading.Condition()
        self._events: list[EventLine] = []
        self._closed = False

    # What a test does to it

    def happen(self, kind: str = "ticket.moved", ticket: int | None = None, project: str = "shop") -> int:
        with self._news:
            n = len(self._events) + 1
            self._events.append(EventLine(n=n, at=float(n), kind=kind, project=project, ticket=ticket, data={"n": n}))
            self._news.notify_all()
        return n

    def put(self, id: int, title: str = "", state: str = "queued", **told: object) -> TicketLine:
        self.tickets[id] = a_ticket(id, title, state, **told)
        self.happen(ticket=id)
        return self.tickets[id]

    def close(self) -> None:
        with self._news:
            self._closed = True
            self._news.notify_all()

    # The service

    def _ask(self, name: str) -> None:
        self.asked.append(name)
        if self.trouble is not None:
            raise self.trouble

    def _project(self, cwd: str) -> str:
        if "nowhere" in cwd:
            raise NotFound(f"{cwd} is in no project; run `legion init` there.")
        return "shop"

    def _line(self, id: int) -> TicketLine:
        if id not in self.tickets:
            raise NotFound(f"There is no ticket {id}: see `legion status`.")
        return self.tickets[id]

    def add_project(self, wanted: AddProject, /) -> ProjectAdded:
        self._ask("add_project")
        return ProjectAdded(
            name="shop",
            root=wanted.path,
            branch="main",
            hub="/data/hub.git",
            worktrees="../shop-legion",
            config_file=f"{wanted.path}/legion.toml",
            config_text='[checks.test]\nrun = "make test"\n',
            wrote_config=not wanted.dry_run,
            trusted=True,
            dry_run=wanted.dry_run,
            notes=["Commit legion.toml."],
        )

    def remove_project(self, where: Where, /) -> Done:
        self._ask("remove_project")
        return Done(message=f"{self._project(where.cwd)} is no project any more.")

    def trustable(self, where: Where, /) -> Trustable:
        self._ask("trustable")
        self._project(where.cwd)
        return Trustable(texts=self.config_texts)

    def trust(self, wanted: Trust, /) -> Done:
        self._ask("trust")
        name = self._project(wanted.cwd)
        if not set(wanted.hashes) <= {text.hash for text in self.config_texts}:
            raise StateConflict("legion.toml changed since it was shown: look at it again.")
        self.trusted += wanted.hashes
        return Done(message=f"{name} is trusted.")

    def dispatch(self, wanted: Dispatch, /) -> Dispatched:
        self._ask("dispatch")
        if wanted.request and wanted.request in self.requests:
            return self.requests[wanted.request]
        self._project(wanted.cwd)
        for ticket in wanted.tickets:
            for other in ticket.after:
                if other not in self.tickets:
                    raise BadInput(f"`{ticket.title}` comes after ticket {other}, which is not there.")
        keys: dict[str, int] = {}
        ids = []
        for ticket in wanted.tickets:
            id = max(self.tickets, default=0) + 1
            after = [*ticket.after, *(keys[key] for key in ticket.after_keys)]
            self.put(id, ticket.title, after=after, checkpoint=ticket.checkpoint, epic=ticket.epic)
            self.texts[id] = ticket.text
            ids.append(id)
            if ticket.key:
                keys[ticket.key] = id
        made = Dispatched(ids=ids, keys=keys, notes=["The target fails its checks."] if "red" in wanted.cwd else [])
        if wanted.request:
            self.requests[wanted.request] = made
        self.dispatched.append(wanted)
        return made

    def status(self, cwd: str | None, all: bool, /) -> Status:
        self._ask("status")
        counts: dict[str, int] = {}
        for ticket in self.tickets.values():
            counts[ticket.state] = counts.get(ticket.state, 0) + 1
        line = ProjectLine(
            name="shop",
            root="/src/shop",
            branch="main",
            paused=False,
            trusted=True,
            target=COMMIT,
            baseline="green",
            ahead=2,
        )
        return Status(
            daemon=DaemonLine(
                pid=4242,
                url="http://127.0.0.1:6666",
                version="0.1.0",
                data_dir="/data",
                started_at=time.time() - 65,
                sandbox="bubblewrap works",
            ),
            project=None if cwd is None or "nowhere" in cwd else line,
            projects=[line],
            counts=counts,
            tickets=list(self.tickets.values()),
            omitted=0 if all else 7,
            last_event=len(self._events),
            questions=len(self.questions),
        )

    def ticket(self, id: int, /) -> TicketPage:
        self._ask("ticket")
        return TicketPage(
            ticket=self._line(id),
            text=self.texts.get(id, "Make it so."),
            context="Look into app/.",
            criteria="make test passes",
            plan="",
            files=["app/**"],
            prove=["make login-test"],
            driver="",
            command="agent --fast",
            model="",
            feedback="",
            parked_until=None,
            base=OLD,
            change=COMMIT,
            landed=None,
            worktree="/src/shop-legion/ticket-1",
            runs=self.runs,
            receipts=self.receipts,
            history=[event for event in self._events if event.ticket == id],
            changed_files=["app/login.py"],
            cause=self.cause,
            questions=[question for question in self.questions.values() if question.ticket == id],
        )

    def log(self, id: int, run: int | None, offset: int, /) -> LogText:
        self._ask("log")
        self._line(id)
        if run not in (None, 1):
            raise NotFound(f"Ticket {id} has no run {run}.")
        text = self.log_text[offset:]
        end = offset + len(text)
        if not self.has_run:
            return LogText(ticket=id, run=None, offset=0, next_offset=0, text="", ended=True)
        return LogText(ticket=id, run=1, offset=offset, next_offset=end, text=text, ended=self.log_ended)

    def diff(self, id: int, /) -> Diff:
        self._ask("diff")
        live = self._line(id).state == "working"
        return Diff(ticket=id, base=OLD, head=COMMIT, text=self.diff_text, live=live)

    def graph(self, cwd: str, /) -> Graph:
        self._ask("graph")
        self._project(cwd)
        edges = [[ticket.id, other] for ticket in self.tickets.values() for other in ticket.after]
        depth: dict[int, int] = {}
        for id, ticket in sorted(self.tickets.items()):
            depth[id] = 1 + max((depth[other] for other in ticket.after), default=-1)
        waves: list[list[int]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
        for id, level in depth.items():
            waves[level].append(id)
        path: list[int] = []
        if depth:
            at = max(depth, key=lambda id: depth[id])
            path = [at]
            while self.tickets[at].after:
                at = max(self.tickets[at].after, key=lambda id: depth[id])
                path.insert(0, at)
        return Graph(tickets=list(self.tickets.values()), edges=edges, waves=waves, critical_path=path)

    def wait(self, cwd: str | None, ids: list[int], after_event: int, timeout: float, /) -> WaitState:
        self._ask("wait")
        deadline = time.monotonic() + timeout
        self.waiting.release()
        with self._news:
            while True:
                wanted = [self._line(id) for id in ids] if ids else [t for t in self.tickets.values() if not _ended(t)]
                stuck = [ticket.id for ticket in wanted if ticket.state == "parked"]
                settled = all(_ended(ticket) or ticket.id in stuck for ticket in wanted)
                state = WaitState(settled=settled, tickets=wanted, stuck=stuck, last_event=len(self._events))
                left = deadline - time.monotonic()
                if settled or state.last_event > after_event or left <= 0 or self._closed:
                    return state
                self._news.wait(left)

    def stop(self, id: int, action: Action, /) -> Acted:
        self._ask("stop")
        if _ended(self._line(id)):
            raise StateConflict(f"Ticket {id} has ended already; `legion retry {id}` starts it again.")
        return self._move(id, "stopped")

    def stop_all(self, where: Where, /) -> Acted:
        self._ask("stop_all")
        self._project(where.cwd)
        ids = [id for id, ticket in self.tickets.items() if not _ended(ticket)]
        for id in ids:
            self._move(id, "stopped")
        return Acted(tickets=ids, message=f"{len(ids)} tickets are stopped.")

    def retry(self, id: int, action: Action, /) -> Acted:
        self._ask("retry")
        self.feedback.append(action.feedback)
        return self._move(id, "queued")

    def drop(self, id: int, /) -> Acted:
        self._ask("drop")
        self._line(id)
        del self.tickets[id]
        self.happen("ticket.dropped", id)
        return Acted(tickets=[id], message=f"Ticket {id} is off the board.")

    def pause(self, where: Where, /) -> Acted:
        self._ask("pause")
        return Acted(tickets=[], message=f"{self._project(where.cwd)} is paused.")

    def resume(self, where: Where, /) -> Acted:
        self._ask("resume")
        return Acted(tickets=[], message=f"{self._project(where.cwd)} goes on.")

    def pause_ticket(self, id: int, /) -> Acted:
        self._ask("pause_ticket")
        return self._move(id, "parked")

    def resume_ticket(self, id: int, /) -> Acted:
        self._ask("resume_ticket")
        return self._move(id, "queued")

    def _move(self, id: int, state: str) -> Acted:
        self.put(id, self._line(id).title, state)
        return Acted(tickets=[id], message=f"Ticket {id} is {state}.")

    def collect(self, where: Where, /) -> CollectResult:
        self._ask("collect")
        self._project(where.cwd)
        if self.being_checked:
            self.told_to_wait.set()
            raise Retryable("Your own commits are being checked: try again in a moment.")
        return CollectResult(branch="main", old=OLD, new=COMMIT, commits=2, files=3, message="main has 2 new commits.")

    def worktrees(self, where: Where, /) -> WorktreeList:
        self._ask("worktrees")
        self._project(where.cwd)
        tree = WorktreeLine(name="ticket-1", path="/w/ticket-1", bytes=123456, ticket=1, state="in use")
        return WorktreeList(root="/w", worktrees=[tree], trash_bytes=0)

    def doctor(self, cwd: str | None, /) -> Doctor:
        self._ask("doctor")
        return Doctor(ok=not [finding for finding in self.findings if not finding.ok], findings=self.findings)

    def config(self, cwd: str | None, /) -> Config:
        self._ask("config")
        settings = [
            SettingLine(key="checks.test.run", value="make test", origin="legion.toml of the checkout"),
            SettingLine(key="agents.parallel", value=4, origin="default"),
            SettingLine(key="drivers.claude.run", value="claude -p", origin="/config.toml"),
        ]
        return Config(user_file="/config.toml", project_file="/shop/legion.toml", settings=settings, trusted=False)

    def events(
        self, after: int, limit: int, project_cwd: str | None = None, ticket: int | None = None, /
    ) -> list[EventLine]:
        self._ask("events")
        project = self._project(project_cwd) if project_cwd else None
        with self._news:
            wanted = [
                event
                for event in self._events
                if event.n > after and project in (None, event.project) and ticket in (None, event.ticket)
            ]
        return wanted[:limit]

    def wait_for_event(self, after: int, timeout: float, /) -> bool:
        self.waiting.release()
        with self._news:
            self._news.wait_for(lambda: len(self._events) > after or self._closed, timeout)
            return len(self._events) > after

    def shutdown(self) -> None:
        self._ask("shutdown")
        self.down.set()


def _ended(ticket: TicketLine) -> bool:
    return ticket.state in ("done", "failed", "stopped")


def a_receipt(name: str, verdict: str, **told: object) -> ReceiptLine:
    base = ReceiptLine(
        name=name,
        command=f"make {name}",
        commit=COMMIT,
        tree=OLD,
        verdict=verdict,
        exit_code=0 if verdict == "green" else 1,
        duration=2.5,
        made_at=3000.0,
        tail="" if verdict == "green" else "E   assert 1 == 2\n1 failed\n",
        output="/data/receipts/1",
    )
    return replace(base, **told)  # type: ignore[arg-type]


def a_run(id: int, outcome: str | None = "finished", **told: object) -> RunLine:
    base = RunLine(
        id=id,
        attempt=id,
        generation=1,
        started_at=2000.0,
        ended_at=2064.0 if outcome else None,
        outcome=outcome,
        detail="exit code 0" if outcome == "finished" else "",
        saved=None,
    )
    return replace(base, **told)  # type: ignore[arg-type]
