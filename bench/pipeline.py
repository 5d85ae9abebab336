"""The tokens that Legion itself adds to a ticket: what its agent, and who reads the change, are told beside their work.

No provider counts here, so tokens are estimated as characters divided by four. The words of the person and the change
itself are counted apart: those would have to be read without Legion, too.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench.report import Report, say
from legion.config.files.project import parse
from legion.config.files.teams import definitions
from legion.domain.agents.teams import REVIEWER
from legion.domain.checks import CheckResult, Receipt
from legion.domain.review.verdicts import Finding, ReviewRequest, Severity
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import Ticket
from legion.git.core.history import FileChange, FileStatus
from legion.jobs.agent import briefing
from legion.jobs.attempts import feedback
from legion.jobs.review import prompt
from legion.jobs.review.prompt import ReviewMaterial

_CONFIG = parse('[checks.test]\nrun = "make test"\n[checks.lint]\nrun = "make lint"\n[environment]\nports = 2\n')
_WISH = TicketSpec(
    title="Log in with a password",
    text="A page /login with name and password. A wrong password says so and keeps the name.",
    context="Sessions live in app/auth.py, templates in app/pages.",
    criteria="make test passes\na wrong password says so\nthe session ends after a day",
)
_TICKET = Ticket(id=7, project=1, spec=_WISH, attempt=1)
_LINES = "".join(f"+    assert session.ends_at == started + day * {number}\n" for number in range(60))
_DIFF = f"diff --git a/app/auth.py b/app/auth.py\n--- a/app/auth.py\n+++ b/app/auth.py\n@@ -1,0 +1,60 @@\n{_LINES}"
_FOUND = (
    Finding(weight=Severity.BLOCKING, file="app/auth.py", line=12, text="The password is compared with ==.", id=1),
    Finding(weight=Severity.NIT, file="app/pages/login.html", line=None, text="The title is missing.", id=2),
)
_READING = ReviewRequest(
    id=1, project=1, ticket=7, attempt=1, reviewer="reviewer", round=1, base="b", commit="c", binding=True
)  # fmt: skip


def run(folder: Path, report: Report) -> None:
    say("tokens are estimated: characters / 4; the ticket's own words and the change are not counted")
    words = _tokens("".join((_WISH.title, _WISH.text, _WISH.context, _WISH.criteria)))
    first = briefing.briefing(_TICKET, _CONFIG)
    report.value("rules of who builds", _tokens(briefing.RULES), "tokens", aim=250)
    report.value("briefing, beside the ticket's own words", _tokens(first) - words, "tokens", aim=300)
    red = replace(_TICKET, attempt=2, feedback=feedback.checks_failed([_red()]))
    after_red = _going_on(red) - _tokens(_red().tail)
    report.value("the next attempt, beside the output that was red", after_red, "tokens", aim=150)
    read = replace(_TICKET, attempt=2, feedback=feedback.reviewed("It leaks.", _FOUND))
    report.value("the next attempt after a review of two findings", _going_on(read), "tokens", aim=200)
    role = definitions().roles[REVIEWER].prompt
    report.value("rules of who reads", _tokens(prompt.RULES + role), "tokens", aim=400)
    lead = definitions().roles["tech_lead"].prompt
    report.value("rules of who advises", _tokens(briefing.ADVISER_RULES + lead), "tokens", aim=400)
    matter = _matter()
    own = words + _tokens(_DIFF)
    look = _tokens(prompt.first(matter)) - own
    report.value("its first look, beside ticket and change", look, "tokens", aim=350)
    again = replace(matter, reading=replace(_READING, round=2), said=_FOUND, since=_DIFF)
    later = _tokens(prompt.again(again)) - _tokens(_DIFF)
    report.value("its second look, beside what is new", later, "tokens", aim=350)
    refused = replace(matter, reading=replace(_READING, refused=1, complaint="it holds no verdict"))
    report.value("an answer asked for again", _tokens(prompt.again(refused)), "tokens", aim=200)
    whole = _tokens(briefing.RULES) + _tokens(first) - words + _tokens(prompt.RULES + role) + look
    report.value("a ticket that is built once and read once", whole, "tokens", aim=1200)


def _going_on(ticket: Ticket) -> int:
    return _tokens(briefing.resume_text(ticket, _CONFIG, (), (), ()))


def _matter() -> ReviewMaterial:
    return ReviewMaterial(
        ticket=_TICKET,
        reading=_READING,
        files=(FileChange(path="app/auth.py", status=FileStatus.MODIFIED, additions=60, deletions=0),),
        diff=_DIFF,
        since="",
        said=(),
        receipts=(replace(_red(), verdict=CheckResult.GREEN),),
        to_run=("make lint",),
        pointers=(),
    )


def _red() -> Receipt:
    return Receipt(
        id=1,
        project=1,
        ticket=7,
        name="test",
        command="make test",
        commit="c",
        tree="t",
        verdict=CheckResult.RED,
        exit_code=2,
        duration=3.0,
        made_at=0.0,
        tail="FAILED tests/test_login.py::test_a_wrong_password_says_so\n" * 20,
        output="",
        digest="",
    )


def _tokens(text: str) -> int:
    return round(len(text) / 4)
