"""Opens the terminal UI: checks the terminal, paints at once, asks the daemon while Textual is imported, then runs.

Importing Textual takes half a second. Until then the screen shows the project, the counts and the most important
tickets, as soon as the daemon has answered. Textual draws on stderr, so this does, too.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

from legion.wire.errors import BadInput, LegionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from legion.client.legion import Legion
    from legion.wire.board import Status

_ENTER = "\x1b[?1049h\x1b[H\x1b[2J\x1b[?25l"
_COERCED = ("C.UTF-8", "C.utf8", "UTF-8")
_LEAVE = "\x1b[?25h\x1b[?1049l"


def refuse_unusable_terminal() -> None:
    """Raises BadInput where no screen can be drawn."""
    if os.environ.get("TERM", "") in ("", "dumb"):
        raise BadInput("This terminal (TERM=dumb) cannot show screens; use `legion tui --plain`, or set TERM.")
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise BadInput("The terminal UI needs a terminal; use `legion tui --plain` or `legion status`.")


def run(data_dir: Path, cwd: str) -> int:
    """The exit code."""
    refuse_unusable_terminal()
    for number in (signal.SIGTERM, signal.SIGHUP):
        # Until Textual runs, which handles them itself: the terminal is left as it was.
        signal.signal(number, lambda number, frame: sys.exit(128 + number))
    sys.stderr.write(f"{_ENTER}\x1b[1mLegion\x1b[0m  connecting ...\r\n")
    sys.stderr.flush()
    opening = _Opening(data_dir, cwd)
    asking = threading.Thread(target=opening.ask, daemon=True, name="opening")
    asking.start()
    try:
        from legion.tui.app import LegionApp, Options
        from legion.tui.store import StartedWith

        # From here on Textual draws; a late answer must not draw over it.
        opening.close()
        options = Options(
            data_dir=data_dir,
            cwd=cwd,
            memory=data_dir / "tui.json",
            few_colours=has_few_colours(),
            light=_is_light(),
            ascii=shows_ascii_alone(),
        )
        app = LegionApp(options, StartedWith(legion=opening.legion, status=opening.status))
        app.run()
    finally:
        sys.stderr.write(_LEAVE)
        sys.stderr.flush()
    return app.return_code or 0


class _Opening:
    """The first request, and the picture of its answer."""

    def __init__(self, data_dir: Path, cwd: str) -> None:
        self._data_dir = data_dir
        self._cwd = cwd
        self._lock = threading.Lock()
        self._closed = False
        self.legion: Legion | None = None
        self.status: Status | None = None

    def ask(self) -> None:
        """Only of a daemon that runs: the app starts one and shows that it does."""
        from legion.tui.link.requests import connected

        try:
            legion = connected(self._data_dir, start=False)
            status = legion.status(self._cwd)
        except LegionError:
            return
        with self._lock:
            if not self._closed:
                self.legion, self.status = legion, status
                _paint(status)

    def close(self) -> None:
        with self._lock:
            self._closed = True


def _paint(status: Status) -> None:
    from legion.client.text.board import listed
    from legion.client.text.rows import BLANK
    from legion.tui.views.status_line import status_line

    columns, height = _size()
    rows = [status_line(status, None, columns), BLANK, *listed(status.tickets, columns)][: height - 1]
    lines = ("".join(f"\x1b[{cell.colour.value}m{cell.text}\x1b[0m" for cell in row.cells) for row in rows)
    sys.stderr.write("\x1b[H\x1b[2J" + "\r\n".join(lines))
    sys.stderr.flush()


def _size() -> tuple[int, int]:
    try:
        return os.get_terminal_size(sys.stderr.fileno())
    except OSError:
        return 80, 24


def has_few_colours() -> bool:
    """Terminals without 256 colours get the colours of their own palette; without colours those are left out."""
    if os.environ.get("NO_COLOR"):
        return True
    term, colours = os.environ.get("TERM", ""), os.environ.get("COLORTERM", "")
    return colours not in ("truecolor", "24bit") and not any(part in term for part in ("256", "kitty", "direct"))


def shows_ascii_alone() -> bool:
    """The Linux console has few glyphs. Elsewhere the locale says it; where none is set, terminals show UTF-8."""
    named = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or "UTF-8"
    if named in _COERCED and not os.environ.get("LC_ALL"):
        # Python itself sets LC_CTYPE where the locale is C.
        named = os.environ.get("LANG") or named
    return os.environ.get("TERM") == "linux" or "utf" not in named.lower()


def _is_light() -> bool:
    """Some terminals name their background in COLORFGBG; 7 and 15 are light."""
    return os.environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")
