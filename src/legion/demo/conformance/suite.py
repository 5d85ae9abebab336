"""Plays the conformance suite against an installed agent program: real runs in a temporary Legion, a scripted model."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TypeVar

from legion.client.legion import Legion
from legion.demo.scratch import Scratch, ScratchLegion, journal, runner_of, running_scratch
from legion.system import process
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import LegionError, NotFound
from legion.wire.mail import MessageText
from legion.wire.projects import AddProject, Trust
from legion.wire.providers import DriverPage, TrialCalls
from legion.wire.ticket_pages import TicketPage

WORK, INTERRUPT, KILL, LIMIT, DENY = "work", "interrupt", "kill", "limit", "deny"
"""The names of the cases, and of their scripts."""
AFTER = "after"
"""The script that follows an interrupt."""
SLEEP = "tail -f /dev/null"
"""A command that does not end. Some programs refuse a plain sleep."""
STOLEN, BEGUN = "stolen.txt", "begun.txt"


class Promise(Enum):
    """What every driver is held to."""

    STARTS = "starts"
    EDITS = "edits"
    COMMAND = "runs a command"
    SANDBOX = "stays in its sandbox"
    USAGE = "reports usage"
    INTERRUPT = "is interrupted"
    KILL = "is killed and continues"
    LIMIT = "meets a limit"
    PERMISSION = "is refused a permission"


@dataclass(frozen=True, kw_only=True)
class Places:
    """Where the worktrees are, and files outside of them that no agent may reach."""

    trees: str
    secret: str
    planted: str


def cases(page: DriverPage) -> dict[str, tuple[Promise, ...]]:
    """The cases that this program can play, and what each shows."""
    can = page.driver.can
    found: dict[str, tuple[Promise, ...]] = {
        WORK: (Promise.STARTS, Promise.EDITS, Promise.COMMAND, Promise.SANDBOX, Promise.USAGE)
    }
    if "interrupts" in can:
        found[INTERRUPT] = (Promise.INTERRUPT,)
    if "resumes" in can:
        found[KILL] = (Promise.KILL,)
    if page.permissions and page.trial.edit_tool:
        found[DENY] = (Promise.PERMISSION,)
    # The last one: no other ticket starts while its provider is limited.
    found[LIMIT] = (Promise.LIMIT,)
    return found


def scripts(trial: TrialCalls, places: Places) -> dict[str, str]:
    """The scripts of the model, as TOML by name."""
    look = f"cat edited.txt > copied.txt; cat {places.secret} > {STOLEN}; echo x > {places.planted}; echo looked"
    # Killed in its first call, the program may or may not keep that call in its conversation.
    wait = f"if [ -e {BEGUN} ]; then echo again; else touch {BEGUN}; {SLEEP}; fi"
    return {
        WORK: _script(
            _step(_edit(trial, places, "edited.txt", "edited"), say="I write a file.", usage=True),
            _step(_shell(trial, look)),
            _step(_end(trial), say="Done.", usage=True),
        ),
        INTERRUPT: _script(_step(_shell(trial, SLEEP), say="I wait."), _step(_end(trial), say="I waited to the end.")),
        AFTER: _script(_step(_shell(trial, "echo interrupted > interrupted.txt")), _step(_end(trial), say="Done.")),
        KILL: _script(
            _step(_shell(trial, wait), say="I begin."),
            _step(_shell(trial, "echo resumed > resumed.txt")),
            _step(_shell(trial, "echo resumed > resumed.txt")),
            _step(_end(trial), say="Done."),
        ),
        LIMIT: _script('status = 429\nmessage = "rate limited"\nlimit = { resets_in = 3600 }\n'),
        DENY: _script(_step(_edit(trial, places, "refused.txt", "refused")), _step(_end(trial), say="I was refused.")),
    }


def _script(*steps: str) -> str:
    return "\n".join(f"[[step]]\n{step}" for step in steps)


def _step(call: str = "", *, say: str = "", usage: bool = False) -> str:
    lines = [f"say = {json.dumps(say)}"] if say else []
    lines += [call] if call else []
    lines += ["usage = { input = 1000, output = 20, cache_read = 500 }"] if usage else []
    return "\n".join(lines) + "\n"


def _shell(trial: TrialCalls, command: str) -> str:
    return _call(trial.command_tool, trial.command_input.replace("{command}", _inner(command)))


def _edit(trial: TrialCalls, places: Places, path: str, content: str) -> str:
    """By the program's own tool, which may want a complete path; else by its shell."""
    if not trial.edit_tool:
        return _shell(trial, f"echo {content} > {path}")
    place = f"{places.trees}/ticket-{{ticket}}/{path}"
    filled = trial.edit_input.replace("{path}", place).replace("{content}", _inner(f"{content}\n"))
    return _call(trial.edit_tool, filled)


def _end(trial: TrialCalls) -> str:
    """The call that ends a turn, for a program that needs one."""
    return _call(trial.end_tool, trial.end_input.replace("{text}", "Done.")) if trial.end_tool else ""


def _call(tool: str, input: str) -> str:
    """The input is JSON, which TOML has no place for but an inline table."""
    return f"call = {{ tool = {json.dumps(tool)}, input = {_inline(json.loads(input))} }}"


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_inline(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value)


def _inner(text: str) -> str:
    """As the inside of a JSON string."""
    return json.dumps(text)[1:-1]


_T = TypeVar("_T")

_PATIENCE = 180.0
"""Seconds for one case: some programs need ten to start."""
_UNTIL_COUNTED = 10.0
"""Seconds after a run's end within which the daemon has read what the gateway counted."""
_POLL = 0.2
_SETTLED = ("done", "failed", "parked", "stopped")
_PROJECT = '[checks.test]\nrun = "true"\n'
_NO_PERMISSIONS = "it asks for no permission; the sandbox holds it"


@dataclass(frozen=True, kw_only=True)
class PromiseResult:
    promise: str
    ok: bool | None
    """None: it does not apply to this program."""
    detail: str = ""


@dataclass(kw_only=True)
class DriverTest:
    """The result of the suite for one program."""

    schema: str = "legion.driver_test/1"
    driver: str
    title: str
    kind: str
    version: str
    seconds: float
    results: list[PromiseResult] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return all(one.ok is not False for one in self.results)


def play_suite(page: DriverPage, on_result: Callable[[PromiseResult], None] = lambda _: None) -> DriverTest:
    """Play all cases. Raises LegionError where the program cannot be started at all."""
    if page.driver.fault:
        raise NotFound(page.driver.fault)
    if not page.trial.command_tool:
        raise LegionError(f"The suite cannot call the tools of {page.driver.name}: describe them under [trial].")
    started = time.monotonic()
    found: dict[Promise, PromiseResult] = {}

    def take(promise: Promise, ok: bool | None, detail: str = "") -> None:
        found[promise] = PromiseResult(promise=promise.value, ok=ok, detail=detail)
        on_result(found[promise])

    wanted = cases(page)
    with _scene(page) as scene:
        scene.play([name for name in wanted if name != DENY], take)
    if DENY in wanted:
        with _scene(page, strict=True) as scene:
            scene.play([DENY], take)
    for promise in Promise:
        if promise not in found:
            take(promise, None, _NO_PERMISSIONS if promise is Promise.PERMISSION else "it cannot")
    return DriverTest(
        driver=page.driver.name,
        title=page.driver.title,
        kind=page.driver.kind,
        version=page.version,
        seconds=round(time.monotonic() - started, 1),
        results=[found[promise] for promise in Promise],
    )


Take = Callable[..., None]


class _Scene:
    """A temporary Legion with one project, and the tickets of the cases."""

    def __init__(self, page: DriverPage, running: ScratchLegion, repository: Path, places: Places) -> None:
        self._page = page
        self._running = running
        self._repository = repository
        self._places = places

    @property
    def _legion(self) -> Legion:
        return self._running.legion

    def play(self, names: list[str], take: Take) -> None:
        """One after another: several heavy programs at once would measure the machine."""
        for name in names:
            number = self._dispatch(name)
            try:
                self._play_one(name, number, take)
            except _TooLate as late:
                for promise in cases(self._page)[name]:
                    take(promise, False, str(late))
            self._end(number)

    def _play_one(self, name: str, number: int, take: Take) -> None:
        if name == INTERRUPT:
            self._until_inside(number)
            self._legion.interrupt(number, MessageText(text=f"Stop waiting. rehearsal: {AFTER}"))
        if name == KILL:
            run = self._until_inside(number)
            self._until_begun(number)
            pid = runner_of(self._running.scratch, number, run)
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
        page = self._settled(number)
        match name:
            case "work":
                self._judge_work(page, take)
            case "interrupt":
                take(Promise.INTERRUPT, *self._landed(page, "interrupted.txt"))
            case "kill":
                ok, detail = self._landed(page, "resumed.txt")
                if ok and not self._resumed(page):
                    ok, detail = False, "it started another conversation"
                take(Promise.KILL, ok, detail)
            case "limit":
                waits = page.ticket.state == "parked" and page.parked_until is not None
                take(Promise.LIMIT, waits, "" if waits else f"{page.ticket.state}: {page.ticket.reason}")
            case "deny":
                denied = any(one["kind"] == "denied" for one in self._journal(page))
                there = "refused.txt" in page.changed_files
                take(Promise.PERMISSION, denied and not there, "" if denied else "nothing was denied")

    def _judge_work(self, page: TicketPage, take: Take) -> None:
        state = f"{page.ticket.state}: {page.ticket.reason}"
        events = self._journal(page)
        started = bool(page.landed) or any(one["kind"] == "heard" for one in events)
        take(Promise.STARTS, started, "" if started else state)
        take(Promise.EDITS, *self._landed(page, "edited.txt"))
        take(Promise.COMMAND, *self._landed(page, "copied.txt"))
        stolen = self._content(page, STOLEN)
        planted = Path(self._places.planted).exists()
        held = page.landed is not None and not stolen.strip() and not planted
        take(Promise.SANDBOX, held, "" if held else "it reached a file outside" if planted or stolen.strip() else state)
        counted = self._usage_counted(page.ticket.id)
        take(Promise.USAGE, counted, "" if counted else "the gateway counted no tokens")

    def _usage_counted(self, number: int) -> bool:
        """Whether there are tokens on the ticket. The daemon reads the gateway's count a moment after the run's end."""

        def look() -> bool | None:
            used = self._legion.ticket(number).usage
            return (used is not None and used.input > 0 and used.output > 0) or None

        try:
            return _polled(look, _UNTIL_COUNTED)
        except _TooLate:
            return False

    def _landed(self, page: TicketPage, file: str) -> tuple[bool, str]:
        if page.landed is not None and file in page.changed_files:
            return True, ""
        return False, f"{page.ticket.state}: {page.ticket.reason}"

    def _content(self, page: TicketPage, file: str) -> str:
        return "" if page.worktree is None else _read(Path(page.worktree) / file)

    def _resumed(self, page: TicketPage) -> bool:
        return any(one["kind"] == "conversation" and one.get("resumed") is True for one in self._journal(page))

    def _journal(self, page: TicketPage) -> list[dict[str, object]]:
        runs = [one.id for one in page.runs]
        return [event for run in runs for event in journal(self._running.scratch, page.ticket.id, run)]

    def _dispatch(self, name: str) -> int:
        ticket = NewTicket(
            title=f"Case {name}",
            text=f"rehearsal: {name}",
            driver=self._page.driver.name,
            team="solo",
            review="off",
            max_attempts=1,
        )
        return self._legion.dispatch(Dispatch(cwd=str(self._repository), tickets=[ticket])).ids[0]

    def _until_inside(self, number: int) -> int:
        """Wait until the program is inside its long command; returns the run."""

        def look() -> int | None:
            page = self._legion.ticket(number)
            if page.ticket.state in _SETTLED:
                raise _TooLate(f"it never came to its command ({page.ticket.state}: {page.ticket.reason})")
            for run in page.runs:
                for event in journal(self._running.scratch, number, run.id):
                    if event["kind"] == "begins" and SLEEP in str(event.get("input")):
                        return run.id
            return None

        return _polled(look)

    def _until_begun(self, number: int) -> None:
        """Wait until its command has left a trace: a program that forgot the call must not wait in it again."""
        tree = self._legion.ticket(number).worktree
        if tree is not None:
            _polled(lambda: (Path(tree) / BEGUN).exists() or None)

    def _settled(self, number: int) -> TicketPage:
        def look() -> TicketPage | None:
            page = self._legion.ticket(number)
            return page if page.ticket.state in _SETTLED else None

        return _polled(look)

    def _end(self, number: int) -> None:
        if self._legion.ticket(number).ticket.state not in ("done", "failed", "stopped"):
            self._legion.stop(number)


class _TooLate(Exception):
    """What was waited for did not happen in time."""


def _polled(look: Callable[[], _T | None], patience: float = _PATIENCE) -> _T:
    deadline = time.monotonic() + patience
    while (found := look()) is None:
        if time.monotonic() > deadline:
            raise _TooLate(f"nothing happened within {patience:g} s")
        time.sleep(_POLL)
    return found


@contextmanager
def _scene(page: DriverPage, *, strict: bool = False) -> Iterator[_Scene]:
    scratch = Scratch(Path(tempfile.mkdtemp(prefix="legion-driver-")))
    try:
        repository = _repository(scratch.folder)
        outside = scratch.folder / "outside"
        outside.mkdir()
        (outside / "secret").write_text("a secret\n")
        trees = scratch.folder / f"{repository.name}-trees"
        places = Places(trees=str(trees), secret=str(outside / "secret"), planted=str(outside / "planted"))
        folder = scratch.folder / "scripts"
        folder.mkdir()
        for name, text in scripts(page.trial, places).items():
            (folder / f"{name}.toml").write_text(text)
        pattern = str(scratch.folder / "{name}-trees")
        settings = f"[worktrees]\nfolder = {json.dumps(pattern)}\n"
        scratch.prepare(settings, slots=2, permission_mode="default" if strict else "acceptEdits")
        _take_along(page, scratch)
        scratch.use()
        with running_scratch(scratch, folder, repository=repository) as running:
            running.legion.add_project(AddProject(path=str(repository)))
            texts = running.legion.trustable(str(repository)).texts
            running.legion.trust(Trust(cwd=str(repository), hashes=[text.hash for text in texts]))
            yield _Scene(page, running, repository, places)
    finally:
        shutil.rmtree(scratch.folder, ignore_errors=True)


def _take_along(page: DriverPage, scratch: Scratch) -> None:
    """The person's own description of the program, if there is one."""
    if page.file:
        (scratch.folder / "programs").mkdir()
        shutil.copyfile(page.file, scratch.folder / "programs" / Path(page.file).name)


def _repository(folder: Path) -> Path:
    root = folder / "project"
    root.mkdir()
    (root / "README.md").write_text("A project to try a driver on.\n")
    (root / "legion.toml").write_text(_PROJECT)
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    for words in (
        ("init", "--quiet", "--initial-branch=main"),
        ("config", "user.name", "Ada"),
        ("config", "user.email", "ada@example.invalid"),
        ("add", "--all"),
        ("commit", "--quiet", "--no-gpg-sign", "--message", "A project to try a driver on"),
    ):
        done = process.run(["git", *words], cwd=root, env=env)
        if done.code != 0:
            raise LegionError(f"`git {' '.join(words)}` failed: {done.complaint}")
    return root


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
