"""`make bench`, or `python -m bench start landing ...` for parts of it.

`growth`, `projects` and `plans` take minutes and run only by name. A number behind `growth` says how many tickets
it drives, one behind `cost` how many at once, one behind `conversations` how many files it makes; words behind
`projects` choose some of its projects. `coupled` takes a folder and words of its own.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from bench import (
    acp,
    attach,
    back,
    claude,
    conversations,
    cost,
    coupled,
    daemon,
    foresight,
    gateway,
    governor,
    growth,
    landing,
    leader,
    machines,
    mail,
    network,
    page,
    pipeline,
    plans,
    projects,
    scale,
    start,
    tui,
    warm,
)
from bench.report import Report

PARTS = {
    "cost": cost.run,
    "start": start.run,
    "network": network.run,
    "landing": landing.run,
    "train": landing.train,
    "foresight": foresight.run,
    "scale": scale.run,
    "back": back.run,
    "daemon": daemon.run,
    "mail": mail.run,
    "leader": leader.run,
    "attach": attach.run,
    "machines": machines.run,
    "gateway": gateway.run,
    "governor": governor.run,
    "claude": claude.run,
    "warm": warm.run,
    "acp": acp.run,
    "tui": tui.run,
    "page": page.run,
    "conversations": conversations.run,
    "pipeline": pipeline.run,
    "growth": growth.run,
    "projects": projects.run,
    "plans": plans.run,
}
_ONLY_BY_NAME = ("growth", "projects", "plans")


def main() -> int:
    words = sys.argv[1:]
    if words[:1] == ["coupled"]:
        return _coupled(words[1:])
    number = int(words.pop()) if len(words) > 1 and words[-1].isdecimal() else None
    chosen = words[1:] if words[:1] == ["projects"] else []
    wanted = words[:1] if chosen else words or [name for name in PARTS if name not in _ONLY_BY_NAME]
    unknown = [name for name in wanted if name not in PARTS]
    strange = [name for name in chosen if name not in {one.name for one in projects.listed()}]
    if strange:
        sys.stderr.write(f"There is no project {strange[0]!r} in bench/projects.toml.\n")
        return 2
    if unknown:
        sys.stderr.write(f"There is no part {unknown[0]!r}: choose from {', '.join(PARTS)}.\n")
        return 2
    report = Report()
    for name in wanted:
        with tempfile.TemporaryDirectory(prefix="legion-bench-", ignore_cleanup_errors=True) as folder:
            report.part(name)
            if name == "growth":
                growth.run(Path(folder), report, number or growth.TICKETS)
            elif name == "cost":
                cost.run(Path(folder), report, number or cost.AT_ONCE)
            elif name == "conversations":
                conversations.run(Path(folder), report, number or conversations.SESSIONS)
            elif name == "projects":
                projects.run(Path(folder), report, chosen)
            else:
                PARTS[name](Path(folder), report)
    report.summary()
    return 0


def _coupled(words: list[str]) -> int:
    report = Report()
    with tempfile.TemporaryDirectory(prefix="legion-bench-", ignore_cleanup_errors=True) as folder:
        coupled.run(Path(folder), report, words)
    report.summary()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
