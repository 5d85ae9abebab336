"""Readers that are plain programs: what each says at its first, second and later looks is written down before."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

_SCRIPT = """\
name=$(sed -n 's/^play //p' "$LEGION_BRIEFING" | head -1)
here={folder}/$name
n=$(($(ls "$here" | grep -c '^told') + 1))
cp "$LEGION_BRIEFING" "$here/told-$n"
while [ ! -f "$here/say-$n" ]; do n=$((n - 1)); done
. "$here/say-$n"
"""


class Readers:
    """A ticket whose text is `play NAME` is read by one who says what stands under that name; its last answer again
    and again where it has no more. What readers were told is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "reader.sh").write_text(_SCRIPT.format(folder=folder))

    @property
    def settings(self) -> str:
        return f'[drivers.reader]\nrun = "sh {self.folder}/reader.sh"\n[review]\ndriver = "reader"\n'

    def say(self, name: str, *answers: str | Mapping[str, object]) -> str:
        """Answers are verdicts, or shell scripts that print some. Returns the text for the ticket."""
        here = self.folder / name
        here.mkdir()
        for number, answer in enumerate(answers, 1):
            script = answer if isinstance(answer, str) else f"cat <<'END'\n{json.dumps(answer)}\nEND\n"
            (here / f"say-{number}").write_text(script)
        return f"play {name}"

    def told(self, name: str) -> list[str]:
        """What each look began with, the first one first."""
        files = sorted((self.folder / name).glob("told-*"), key=lambda file: int(file.name.split("-")[1]))
        return [file.read_text() for file in files]


def approve(*read: str, **more: object) -> dict[str, object]:
    return {"verdict": "approve", "summary": "It does what is asked.", "read": list(read), **more}


def changes(*read: str, findings: Sequence[Mapping[str, object]], **more: object) -> dict[str, object]:
    said = {"verdict": "changes", "summary": "It is not right yet.", "read": list(read), "findings": list(findings)}
    return {**said, **more}


def finding(file: str, line: int | None, text: str, weight: str = "blocking") -> dict[str, object]:
    return {"weight": weight, "file": file, "line": line, "text": text}
