"""Readers that are plain programs: what each says at its first, second and later looks is written down before."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from legion.wire.mail import QuestionLine
from legion.wire.ticket_pages import ReviewLine
from tests.support.legion import Project, Squad
from tests.support.repository import CHECK, Repository

ALWAYS = f'{CHECK}\n[review]\npolicy = "always"\n'
_SCRIPT = """\
name=$(sed -n 's/^play //p' "$LEGION_BRIEFING" | head -1)
here={folder}/$name
n=$(($(ls "$here" | grep -c '^told') + 1))
cp "$LEGION_BRIEFING" "$here/told-$n"
while [ ! -f "$here/say-$n" ]; do n=$((n - 1)); done
. "$here/say-$n"
"""
Answer = str | Mapping[str, object]


class Readers:
    """A ticket whose text is `play NAME` is read by one who says what stands under that name; its last answer again
    and again where it has no more. What readers were told is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "reader.sh").write_text(_SCRIPT.format(folder=folder))

    @property
    def settings(self) -> str:
        walls = f'[sandbox]\nwrite = ["{self.folder}"]\n'
        return f'{walls}[drivers.reader]\nrun = "sh {self.folder}/reader.sh"\n[reviewer]\ndriver = "reader"\n'

    def say(self, name: str, *answers: Answer) -> str:
        """Answers are verdicts, or shell scripts that print some. Returns the text for the ticket."""
        here = self.folder / name
        here.mkdir()
        for number, answer in enumerate(answers, 1):
            (here / f"say-{number}").write_text(answer if isinstance(answer, str) else said(answer))
        return f"play {name}"

    def told(self, name: str) -> list[str]:
        """What each look began with, the first one first."""
        files = sorted((self.folder / name).glob("told-*"), key=lambda file: int(file.name.split("-")[1]))
        return [file.read_text() for file in files]


class Office:
    """A daemon whose readers are scripted, and a project."""

    def __init__(self, one: Squad, readers: Readers, project: Project) -> None:
        self.squad = one
        self.readers = readers
        self.project = project

    def dispatch(self, name: str, agent: str, *answers: Answer, **fields: object) -> int:
        return self.project.dispatch(name, agent, text=self.readers.say(name, *answers), **fields)

    def question(self, ticket: int) -> QuestionLine:
        self.project.until(ticket, "parked")
        (one,) = [one for one in self.squad.client.inbox().questions if one.ticket == ticket]
        return one

    def reviews(self, ticket: int) -> list[ReviewLine]:
        return self.project.ticket(ticket).reviews

    def page(self, ticket: int) -> str:
        """As a person sees it."""
        return self.squad.cli("ticket", str(ticket), cwd=self.project.repository.root).stdout


@contextlib.contextmanager
def office(
    folder: Path, *, settings: str = "", config: str = ALWAYS, extra: Mapping[str, str] | None = None
) -> Iterator[Office]:
    """`extra`: the daemon's environment, beside what it always has."""
    readers = Readers(folder / "readers")
    one = Squad(folder, settings=readers.settings + settings)
    try:
        yield Office(one, readers, one.start(extra).adopt(Repository(folder / "ada", config)))
    finally:
        one.close()


def said(verdict: Mapping[str, object]) -> str:
    """A shell script that says it."""
    return f"cat <<'END'\n{json.dumps(verdict)}\nEND\n"


def approve(*read: str, **more: object) -> dict[str, object]:
    return {"verdict": "approve", "summary": "It does what is asked.", "read": list(read), **more}


def changes(*read: str, findings: Sequence[Mapping[str, object]], **more: object) -> dict[str, object]:
    answer = {"verdict": "changes", "summary": "It is not right yet.", "read": list(read), "findings": list(findings)}
    return {**answer, **more}


def finding(file: str, line: int | None, text: str, weight: str = "blocking") -> dict[str, object]:
    return {"weight": weight, "file": file, "line": line, "text": text}
