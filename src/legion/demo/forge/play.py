"""`legion demo --forge`: an issue becomes a merged pull request at a GitHub on loopback; its people are scripted."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from legion.cli.base.output import Cell, Colour, Screen
from legion.demo.forge.server import StandIn, make_bare, serving
from legion.demo.forge.state import Hosted
from legion.demo.scratch import ScratchLegion, claude_version, running_scratch
from legion.demo.stage import DemoFolder, prepare
from legion.demo.story import StoryLine, StoryPrinter
from legion.demo.tickets import script_marker
from legion.wire.errors import LegionError
from legion.wire.forge import AddForge, MergePulls
from legion.wire.projects import AddProject, Trust, Where

Seen = TypeVar("Seen")
_SCRIPTS = Path(__file__).parent / "scripts"
_OWNER, _REVIEWER, _ROBOT = "ada", "grace", "legion-bot"
_TOKEN = "a-token-of-the-demo"
_LANDING = '\n[landing]\ntarget = "pr"\nmode = "squash"\n'
_LOOK = 0.5
_PATIENCE = 180.0
_ISSUE = f"""\
`money.cents` cuts off what is smaller than a cent. It should round: 2.345 is 235 cents.

{script_marker("issue")}
"""
_RED = "CHANGES.md has no entry for this change."
_REMARK = "Please say it in the docstring, too: half a cent goes up."


@dataclass(kw_only=True)
class ForgeDemoSummary:
    schema: str = "legion.demoforge/1"
    ok: bool
    problems: list[str] = field(default_factory=list)
    seconds: float
    folder: str
    claude: str
    issue: str
    """open or closed."""
    comments: int
    """Legion's own on the issue: one, which was edited."""
    attempts: int
    merged: str
    """The commit; empty where it was not merged."""
    landed: str


def main(folder: Path | None, *, as_json: bool, screen: Screen) -> int:
    """Run the demo. Returns 0 where everything ended as it should."""
    stream = sys.stderr if as_json else sys.stdout
    printer = StoryPrinter(stream, replace(screen, tty=False, colours=False) if as_json else screen, board=False)
    stage = prepare(folder)
    settings = stage.repository / "legion.toml"
    settings.write_text(settings.read_text() + _LANDING)
    stage.git("commit", "--quiet", "--no-gpg-sign", "--all", "--message", "Land through pull requests")
    stage.scratch.use()
    printer.print_line(screen.bold("Legion demo: an issue becomes a merged pull request"))
    printer.print_line("The forge is a GitHub on loopback; its people and its CI are scripted, and so is the model.")
    printer.print_line(screen.line(Cell(f"All files are in {stage.folder}", Colour.DIM)))
    hosted = Hosted(_OWNER, "invoices", make_bare(stage.repository, stage.folder / "forge.git"))
    hosted.rights |= {_REVIEWER: "write", _ROBOT: "write"}
    with (
        serving(StandIn(hosted=hosted, tokens={_TOKEN: _ROBOT})) as forge,
        running_scratch(stage.scratch, _SCRIPTS, repository=stage.repository) as running,
    ):
        summary = _ForgeDemo(stage, running, forge, printer).run()
    if as_json:
        sys.stdout.write(json.dumps(asdict(summary), indent=2 if screen.tty else None) + "\n")
    for problem in summary.problems:
        printer.print_line(problem)
    return 0 if summary.ok else LegionError.exit_code


class _ForgeDemo:
    def __init__(self, stage: DemoFolder, running: ScratchLegion, forge: StandIn, printer: StoryPrinter) -> None:
        self._stage = stage
        self._legion = running.legion
        self._forge = forge
        self._hosted = forge.hosted
        self._printer = printer
        self._cwd = str(stage.repository)

    def run(self) -> ForgeDemoSummary:
        self._legion.add_project(AddProject(path=self._cwd))
        hashes = [text.hash for text in self._legion.trustable(self._cwd).texts]
        self._legion.trust(Trust(cwd=self._cwd, hashes=hashes))
        claude = claude_version(self._legion.doctor(None))
        wanted = AddForge(cwd=self._cwd, kind="github", address="ada/invoices", url=self._forge.url, key=_TOKEN)
        self._legion.add_forge(wanted)
        self._say("legion forge add github ada/invoices: the project has a forge", "done")
        problems = []
        try:
            self._play()
        except LegionError as stuck:
            problems.append(stuck.message)
        return self._summary(claude, problems)

    def _play(self) -> None:
        issue = self._hosted.open_issue("Round amounts to the nearest cent", _ISSUE, author=_REVIEWER)
        self._hosted.label(issue.number, "legion:go")
        self._say(f"{_REVIEWER} opens issue #{issue.number} and labels it legion:go", "queued")
        number = self._until(self._pull, "a pull request")
        pull = self._hosted.pull(number)
        self._say(f"Legion opens pull request #{number} from {pull.head}, its checks green", "done", 1)
        first = pull.head_commit
        self._hosted.check(first, "changes", "failure", summary=_RED)
        self._say(f"CI of the forge is red: {_RED}", "failed")
        second = self._until(lambda: pull.head_commit if pull.head_commit != first else "", "an answer to CI")
        self._say(f"the agent answers on the same conversation; {second[:8]} is pushed", "working", 1)
        self._hosted.check(second, "changes", "success")
        self._hosted.remark(number, _REMARK, author=_REVIEWER, path="invoices/money.py")
        self._say(f"CI is green; {_REVIEWER} comments on a line: {_REMARK}", "parked")
        third = self._until(lambda: pull.head_commit if pull.head_commit != second else "", "an answer to the reviewer")
        self._until(lambda: any(one.reply_to for one in pull.remarks), "an answer in the thread")
        self._say(f"the agent changes it, and the thread is answered with {third[:8]}", "working", 1)
        self._hosted.check(third, "changes", "success")
        self._hosted.review(number, "APPROVED", author=_REVIEWER)
        self._say(f"{_REVIEWER} approves; legion land pulls", "done")
        self._until(self._merge, "a merge")
        self._until(lambda: self._legion.ticket(1).ticket.state == "done", "a landed ticket")
        self._say("merged by the forge's rules, absorbed, checked: the ticket is done", "done", 1)
        self._until(lambda: "**done**" in issue.comments[0].body, "the last news on the issue")
        self._say(f"issue #{issue.number} is {issue.state}; Legion wrote {len(issue.comments)} comment there", "done")

    def _merge(self) -> bool:
        found = self._legion.merge_pulls(MergePulls(cwd=self._cwd, method="squash"))
        return any(one.stage == "merged" for one in found.pulls)

    def _pull(self) -> int:
        there = self._hosted.issues.items()
        return next((number for number, one in there if one.pull is not None), 0)

    def _say(self, text: str, state: str, ticket: int | None = None) -> None:
        self._printer.print_event(StoryLine(text, state, ticket))

    def _until(self, seen: Callable[[], Seen], what: str) -> Seen:
        """Look at the forge again and again. Raises LegionError where it takes too long."""
        while not (found := seen()):
            if self._printer.seconds > _PATIENCE:
                raise LegionError(f"The demo waited {_PATIENCE:.0f} s, and {what} did not come.")
            time.sleep(_LOOK)
            self._legion.sync_forge(Where(cwd=self._cwd))
        return found

    def _summary(self, claude: str, problems: list[str]) -> ForgeDemoSummary:
        number = self._pull()
        issue = self._hosted.issues.get(1)
        page = self._legion.ticket(1) if number else None
        merged = self._hosted.pull(number).merged if number else ""
        return ForgeDemoSummary(
            ok=not problems and bool(merged),
            problems=problems,
            seconds=self._printer.seconds,
            folder=str(self._stage.folder),
            claude=claude,
            issue=issue.state if issue is not None else "",
            comments=len(issue.comments) if issue is not None else 0,
            attempts=page.ticket.attempt if page is not None else 0,
            merged=merged,
            landed=(page.landed or "") if page is not None else "",
        )
