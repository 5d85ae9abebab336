"""Lives of a daemon, forked from a warm process: each is a process of its own that may die anywhere.

The nursery has one thread, holds nothing and knows nothing of the tests; it forks, waits and tells how the life ended.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from legion.system import crash
from legion.system.crash import Point
from tests.crash import board, windows
from tests.crash.board import Ground
from tests.support import prefork
from tests.support.warm import warm

ROOT = Path(__file__).parents[2]
PATIENCE = 100
Moment = tuple[Point, int]
"""The nth time that a point is passed, in one life."""
LIVES: dict[str, Callable[[Ground], None]] = {
    "work": board.work,
    "look_again": board.look_again,
    "go_on": windows.go_on,
    **windows.LIVES,
}


@dataclass(frozen=True)
class Life:
    """How one life ended, and the points that it and its runners reached, in order."""

    code: int
    """0: it did all it had to. Negative: the signal that ended it."""
    reached: list[Point]

    @property
    def was_killed(self) -> bool:
        return self.code == -signal.SIGKILL


class Nursery:
    def __init__(self) -> None:
        env = {name: value for name, value in os.environ.items() if not name.startswith("LEGION_")}
        env["PYTHONPATH"] = f"{ROOT / 'src'}:{ROOT}"
        theirs, asks = os.pipe()
        answers, told = os.pipe()
        handles = {0: theirs, 1: told, 2: 2}
        self._process = warm(ROOT / "src").start(__name__, [], env, ROOT, handles)
        os.close(theirs)
        os.close(told)
        self._asks = os.fdopen(asks, "wb")
        self._answers = os.fdopen(answers, "rb")
        self._lives = 0

    def live(self, ground: Ground, what: str = "work", *, die_at: Sequence[Moment] = ()) -> Life:
        """One life from its start to its end. The process that comes to one of the moments dies, be it a runner."""
        self._lives += 1
        log = ground.folder / f"reached-{self._lives}"
        log.touch()
        facts = {
            "folder": str(ground.folder),
            "database": ground.database,
            "what": what,
            "log": str(log),
            "die_at": [(point.value, nth) for point, nth in die_at],
        }
        self._asks.write(json.dumps(facts).encode() + b"\n")
        self._asks.flush()
        code = int(self._answers.readline())
        return Life(code=code, reached=[Point(line) for line in log.read_text().splitlines()])

    def close(self) -> None:
        self._asks.close()
        self._answers.close()
        self._process.wait(PATIENCE)


def main() -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _live(json.loads(line))
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _live(facts: dict[str, Any]) -> None:
    """Never returns."""
    code = 1
    ground = Ground(Path(facts["folder"]), facts["database"])
    try:
        signal.alarm(PATIENCE)
        log = os.open(ground.folder / "daemon.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(threadName)s: %(message)s")
        prefork.prepare()
        _arm(Path(facts["log"]), [(Point(name), nth) for name, nth in facts["die_at"]])
        LIVES[facts["what"]](ground)
        code = 0
    except BaseException:  # a forked process has nobody to raise it to
        sys.excepthook(*sys.exc_info())
        sys.stderr.flush()
        faulthandler.dump_traceback(2)
        _tell_journals(ground)
    finally:
        sys.stderr.flush()
        os._exit(code)


def _tell_journals(ground: Ground) -> None:
    """How far each run got, for whoever reads why this life failed."""
    for journal in sorted(ground.data.runs.glob("*/journal*")):
        sys.stderr.write(f"{journal}\n{journal.read_text()}\n")


def _arm(log: Path, moments: Sequence[Moment]) -> None:
    """Ourselves, and by the environment, which the launcher passes on, our runners."""
    os.environ["LEGION_CRASH_LOG"] = str(log)
    os.environ["LEGION_CRASH_AT"] = ",".join(f"{point.value}#{nth}" for point, nth in moments)
    crash.arm_all(moments, log)


if __name__ == "__main__":
    main()
