"""`make agents`: installs every described program that npm or pip has, plays the conformance suite against each, and
writes the table of docs/drivers.md.

Programs are pinned by their descriptions and kept in .venv/programs. Names on the command line limit it to those.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from legion.drivers.programs import catalog
from legion.drivers.programs.description import ProgramDescription
from tests.support import programs

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "drivers.md"
BEGIN, END = "<!-- the suite's table -->", "<!-- end of the table -->"
CLAUDE = "claude"
MARKS = {True: "yes", False: "**no**", None: "-"}


def main(names: list[str]) -> int:
    found: dict[str, dict[str, object]] = {}
    for name in names or [CLAUDE, *(one.name for one in described() if one.trial.command_tool)]:
        result = play(name)
        if result is not None:
            found[name] = result
    write_table(found)
    broken = [name for name, one in found.items() if any(each["ok"] is False for each in one["results"])]  # type: ignore[attr-defined]
    return 1 if broken else 0


def described() -> list[ProgramDescription]:
    return list(catalog.programs().found.values())


def play(name: str) -> dict[str, object] | None:
    """The suite's result; None where the program cannot be installed, which is printed."""
    folder = None
    if name != CLAUDE:
        try:
            folder = programs.install(catalog.programs().found[name])
        except programs.NotInstalled as missing:
            sys.stdout.write(f"{name}: not tried, since {missing}\n")
            return None
    with tempfile.TemporaryDirectory() as own:
        path = os.environ["PATH"] if folder is None else f"{folder}{os.pathsep}{os.environ['PATH']}"
        env = {**os.environ, "PATH": path, "LEGION_DATA_DIR": f"{own}/data", "LEGION_CONFIG": f"{own}/config.toml"}
        legion = [sys.executable, "-m", "legion"]
        done = subprocess.run([*legion, "driver", "test", name, "--json"], env=env, stdout=subprocess.PIPE, check=False)
        subprocess.run([*legion, "down"], env=env, capture_output=True, check=False)
    try:
        result: dict[str, object] = json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"{name}: `legion driver test` printed no result (exit code {done.returncode}).") from None
    marks = (f"{each['promise']} {MARKS[each['ok']]}" for each in result["results"])  # type: ignore[attr-defined]
    sys.stdout.write(f"{name} {result['version']}: {', '.join(marks)}\n")
    return result


def write_table(found: dict[str, dict[str, object]]) -> None:
    """Replace the rows of these programs; the others stay as they were."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    table, _, after = rest.partition(END)
    rows = {match[1]: match[0] for match in re.finditer(r"^\| `([\w-]+)` .*$", table, re.MULTILINE)}
    head = ""
    for name, one in found.items():
        results = one["results"]
        assert isinstance(results, list)
        head = "| program | version | " + " | ".join(each["promise"] for each in results) + " |"
        rows[name] = f"| `{name}` | {one['version']} | " + " | ".join(MARKS[each["ok"]] for each in results) + " |"
    head = head or next(line for line in table.splitlines() if line.startswith("| program"))
    line = "|" + "---|" * (head.count("|") - 1)
    PAGE.write_text(f"{before}{BEGIN}\n\n" + "\n".join([head, line, *rows.values()]) + f"\n\n{END}{after}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
