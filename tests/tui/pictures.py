"""Pictures of the terminal UI, made from the real service with fixed tickets.

`python -m tests.tui.pictures` writes those of the documents into docs/pictures, and the texts that the tests compare
into tests/tui/pictures. Look at what changed before you commit it.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from legion.wire.agents import HireAgent
from legion.wire.ticket_pages import Diff
from tests.api.serving import serving
from tests.support.board import Board
from tests.support.codebase import ROOT
from tests.tui.driving import opened

SIZES = ((60, 20), (80, 24), (120, 40))
TEXTS = ROOT / "tests/tui/pictures"
DOCUMENTS = ROOT / "docs/pictures"
DIFF = """\
diff --git a/app/login.py b/app/login.py
--- a/app/login.py
+++ b/app/login.py
@@ -1,4 +1,6 @@
 from app import users
 SALT = b"legion"
-def login(name):
-    return users.find(name)
+def login(name: str, password: str) -> bool:
+    \"\"\"Whether the password is right.\"\"\"
+    user = users.find(name)
+    return user is not None and user.check(password)
diff --git a/app/users.py b/app/users.py
--- a/app/users.py
+++ b/app/users.py
@@ -10 +10,2 @@ class User:
     name: str
+    digest: bytes
"""
OUTPUT = """\
I start with the tests of the HTTP side.
> Read: app/http.py
> Bash: make test
  failed: 2 failed, 40 passed
The status code is wrong: a refused password must be a 401.
> Edit: app/http.py
"""


@dataclass(frozen=True)
class Picture:
    name: str
    place: str
    keys: Sequence[str] = ()
    """Pressed before the picture is taken."""
    undo: Sequence[str] = ()
    """Pressed afterwards."""
    waits_for: str = ""
    ticket: int = 0
    tab: str = "live"
    document: tuple[int, int] | None = None
    """Its size in the documents, where it is in them."""


PICTURES = (
    Picture("squad", "squad", waits_for="Edit: app/http.py", document=(110, 30)),
    Picture("board", "board", waits_for="longest chain", document=(110, 24)),
    Picture("tree", "board", ("t",), waits_for="├─", undo=("t", "t")),
    Picture("inbox", "inbox", waits_for="WebFetch", document=(110, 20)),
    Picture("agents", "agents", waits_for="Lead the release"),
    Picture("queue", "queue", waits_for="Landed"),
    Picture("usage", "usage", waits_for="Limits"),
    Picture("live", "board", waits_for="Edit: app/http.py", ticket=2),
    Picture("diff", "board", ("j", "j", "j"), waits_for="app/users.py", ticket=3, tab="diff", document=(130, 26)),
    Picture("menu", "board", ("ctrl+p",), waits_for="─ Menu ─"),
    Picture("help", "board", ("question_mark",), waits_for="In every list"),
    Picture("form", "board", ("n",), waits_for="title"),
)


def fill(board: Board) -> None:
    board.put(1, "Tables for users", "done", epic="auth")
    board.put(2, "The HTTP side", "working", after=[1], epic="auth")
    board.put(3, "A page to log in", "landing", after=[1], epic="auth")
    board.put(4, "Rate limits", "failed", "gave up after 5 attempts: conflict", after=[1])
    board.put(5, "End to end tests of the login", "queued", after=[2, 3])
    board.put(6, "Metrics", "queued", after=[4])
    board.put(7, "Everything holds", "queued", after=[5], checkpoint=True)
    # Days ahead: its clock shows the date at every hour of the day.
    board.ask(ticket=2, deadline=time.time() + 3 * 86_400 - 60)
    board.run(2, OUTPUT, ended=False, driver="claude")
    board.callers.instead = {"diff": Diff(ticket=3, base="b", head="h", text=DIFF, live=False)}
    board.service.hire(HireAgent(task="Lead the release.", name="boss", cwd=board.cwd))


async def gallery(board: Board, pictures: Sequence[Picture] = PICTURES, *, drawn: bool = False) -> dict[str, str]:
    """The text of each picture in each size by its name; with `drawn` the SVGs of the documents instead.

    One UI goes from place to place and is resized: starting one for each picture would take far longer.
    """
    made: dict[str, str] = {}
    async with opened(board, "board", SIZES[-1]) as ui:
        store = ui.app.store
        await ui.until(lambda: store.providers.value is not None and store.graph.value is not None)
        for picture in pictures:
            sizes = [picture.document] if drawn and picture.document else [] if drawn else SIZES[::-1]
            if not sizes:
                continue
            await ui.pilot.resize_terminal(*SIZES[-1])
            ui.app.go(picture.place)
            if picture.ticket:
                ui.app.open_ticket(picture.ticket, picture.tab)
            await ui.settled()
            await ui.press(*picture.keys)
            await ui.shows(picture.waits_for)
            for size in sizes:
                await ui.pilot.resize_terminal(*size)
                await ui.settled()
                name = picture.name if drawn else name_of(picture, size)
                made[name] = ui.app.export_screenshot(title="Legion") if drawn else steady(ui.text)
            await ui.press(*["escape"] * (len(ui.app.screen_stack) - 2), *picture.undo)
    return made


def name_of(picture: Picture, size: tuple[int, int]) -> str:
    return f"{picture.name}-{size[0]}x{size[1]}"


def steady(text: str) -> str:
    """Without what differs from run to run: times, commits, numbers of events."""
    text = re.sub(r"\d\d:\d\d:\d\d|\d{4}-\d\d-\d\d \d\d:\d\d", "00:00:00", text)
    text = re.sub(r"\d{4}-\d\d-\d\d", "2026-01-01", text)
    text = re.sub(r"\b(\d+h )?(\d+m )?\d+ ?s\b", lambda found: "0s".ljust(len(found[0]))[: len(found[0])], text)
    # At the end of a line the width of a time moves nothing else.
    text = re.sub(r"0s +(of agents' time\.|ago\b|holds up\b)", r"0s \1", text)
    text = re.sub(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,9}\b", "0a1b2c3d4", text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def main() -> None:
    TEXTS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="legion-") as folder, serving(Path(folder)) as served:
        os.environ["LEGION_CONFIG"] = str(Path(folder) / "config.toml")
        fill(served.board)
        wanted = [one for one in PICTURES if not sys.argv[1:] or one.name in sys.argv[1:]]
        for name, text in asyncio.run(gallery(served.board, wanted)).items():
            (TEXTS / f"{name}.txt").write_text(text)
        for name, svg in asyncio.run(gallery(served.board, wanted, drawn=True)).items():
            (DOCUMENTS / f"tui-{name}.svg").write_text(svg)


if __name__ == "__main__":
    main()
