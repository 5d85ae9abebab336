"""Real features at once.

`python -m bench coupled DATA [TASK ...] [agents=8] [seconds=2] [without=NAME,...] [definitions] [kills]`
`python -m bench coupled DATA disjoint [agents=8] [seconds=2]`: tickets that share nothing, with and without the order

CooperBench's tasks (`bench/coupled_tasks.py`) are played through a real daemon. The agent is scripted and its first
attempt is the real patch, so what is lost after that is the orchestrator's. Each feature is a ticket that its own tests
prove, and all of a task are dispatched at once. Beside it stand three plain ways, on the same trees and with the same
agent.
"""

from __future__ import annotations

import itertools
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench import coupled_programs
from bench.coupled_tasks import Task, checkout, git, tasks
from bench.report import Report, say
from legion.domain.events import Event, EventKind
from legion.store import events
from legion.store.database.transactions import Store, sqlite_url
from legion.wire.dispatch import NewTicket
from legion.wire.ticket_pages import TicketPage
from tests.support.legion import PLAIN, Project, new, squad
from tests.support.repository import Repository

_KILL_EVERY = 20.0
_PATIENCE = 280.0
_TOKENS_A_LINE = 10
_SEED = 41
MECHANISMS: dict[str, str] = {"there": "already_there = false", "proofs": "keep_proofs = 0", "order": "order = false"}
"""By the word behind `without=`: the lines of [conflicts] that switch a mechanism off."""
BY_DEFINITION = "by_definition = true"
_HEAD = (
    "task",
    "landed",
    "green",
    "wrong",
    "turns",
    "/ld",
    "waste",
    "conflict",
    "predict",
    "avoid",
    "wall",
    "oracle",
    "ask",
)
_COLUMNS = "{:<18}{:>9}{:>7}{:>7}{:>9}{:>7}{:>8}{:>9}{:>10}{:>8}{:>8}{:>7}{:>6}"


@dataclass(frozen=True, kw_only=True)
class Options:
    agents: int = 8
    seconds: float = 2.0
    without: tuple[str, ...] = ()
    kills: bool = False
    definitions: bool = False
    """Legion merges by definition."""
    disjoint: bool = False


@dataclass(frozen=True, kw_only=True)
class Played:
    """One task, one way. Times in seconds."""

    features: int
    landed: int
    green: int
    """Landed, and their own tests are green on the last target."""
    wrong: int
    """Landed, and their own tests are red on that target or a later one."""
    turns: int
    wasted: float = 0.0
    """Of all scripted tokens, those of work that did not land."""
    conflicts: int = 0
    predicted: int = 0
    avoided: int = 0
    wall: float = 0.0
    oracle: float = 0.0
    questions: int = 0


def run(folder: Path, report: Report, words: Sequence[str]) -> None:
    data, options, names = _options(words)
    if options.disjoint:
        report.value("disjoint tickets: time against no order", _against_no_order(folder, options), "x", aim=1.02)
        return
    say(_COLUMNS.format(*_HEAD))
    sums: dict[str, list[Played]] = {}
    for task in tasks(data, names):
        rows = {"legion": _played(folder / task.name, task, options)}
        _show(task.name, rows["legion"])
        _keep(data, task, options, rows["legion"])
        for way, row in _baselines(folder, task, options).items():
            _show(f"  {way}", row)
            rows[way] = row
        for way, row in rows.items():
            sums.setdefault(way, []).append(row)
    for way, many in sums.items():
        _show(f"all, {way}", _sum(many))
    total = _sum(sums["legion"])
    report.value("features that did not land green", total.features - total.green, "features", aim=0)
    report.value("wrong landings", total.wrong, "landings", aim=0)
    report.value("turns per landed feature", total.turns / max(1, total.landed), "turns", aim=1.25)
    report.value("tokens on work that did not land", 100 * total.wasted, "%", aim=5)
    report.value("wall time against the oracle", total.wall / total.oracle, "x", aim=1.3)


def _options(words: Sequence[str]) -> tuple[Path, Options, list[str]]:
    if not words:
        raise SystemExit(
            "python -m bench coupled DATA [TASK ...] [agents=8] [seconds=2] [without=NAME,...] [definitions] [kills]"
        )
    options, names = Options(), []
    for word in words[1:]:
        name, is_set, value = word.partition("=")
        if name == "agents" and is_set:
            options = replace(options, agents=int(value))
        elif name == "seconds" and is_set:
            options = replace(options, seconds=float(value))
        elif name == "without" and is_set:
            options = replace(options, without=tuple(MECHANISMS) if value == "all" else tuple(value.split(",")))
        elif word == "kills":
            options = replace(options, kills=True)
        elif word == "disjoint":
            options = replace(options, disjoint=True)
        elif word == "definitions":
            options = replace(options, definitions=True)
        else:
            names.append(word)
    unknown = [name for name in options.without if name not in MECHANISMS]
    if unknown:
        raise SystemExit(f"There is no mechanism {unknown[0]!r}: choose from {', '.join(MECHANISMS)}, all.")
    return Path(words[0]).resolve(), options, names


def _show(name: str, row: Played) -> None:
    per = f"{row.turns / row.landed:.2f}" if row.landed else "-"
    figures = (f"{row.landed}/{row.features}", row.green, row.wrong, row.turns, per, f"{100 * row.wasted:.0f}%")
    more = (row.conflicts, row.predicted, row.avoided, f"{row.wall:.0f}", f"{row.oracle:.0f}", row.questions)
    say(_COLUMNS.format(name, *figures, *more))


def _sum(rows: Sequence[Played]) -> Played:
    names = [name for name in asdict(rows[0]) if name != "wasted"]
    total = Played(**{name: sum(getattr(row, name) for row in rows) for name in names})
    turns = max(1, total.turns)
    return replace(total, wasted=sum(row.wasted * row.turns for row in rows) / turns)


def _keep(data: Path, task: Task, options: Options, row: Played) -> None:
    facts = {"task": task.name, "options": asdict(options), **asdict(row)}
    with (data / "results.jsonl").open("a") as file:
        file.write(json.dumps(facts) + "\n")


_ROUNDS, _EACH = 4, 3
"""Plays of each kind, and tickets for each agent in one."""


def _against_no_order(folder: Path, options: Options) -> float:
    """Each ticket names a definition of its own. The fastest plays count: what else the machine does only adds."""
    with_order: list[float] = []
    without: list[float] = []
    for number in range(_ROUNDS):
        plays = [("", with_order), (MECHANISMS["order"], without)]
        for off, seconds in plays if number % 2 else plays[::-1]:
            seconds.append(_disjoint(folder / f"disjoint-{number}-{len(off)}", options, off))
            say(f"{off or 'order = true'}: {seconds[-1]:.2f} s")
    return min(with_order) / min(without)


def _disjoint(folder: Path, options: Options, off: str) -> float:
    many = options.agents * _EACH
    files = {f"part{n}.py": f"def part{n}():\n    return 0\n" for n in range(many)}
    settings = f"[checks.test]\nrun = 'true'\n[agents]\nparallel = {options.agents}\n[conflicts]\n{off}\n"
    folder.mkdir(parents=True)
    with squad(folder, launch=PLAIN) as one:
        repository = Repository(folder / "repo", settings)
        repository.commit("parts", files)
        project = one.adopt(repository)
        wanted = [
            new(
                f"part {n}",
                f"sleep {options.seconds:g}; sed -i s/0/{n + 1}/ part{n}.py",
                text=f"`part{n}` returns {n + 1}.",
                prove=[f"grep -q {n + 1} part{n}.py"],
            )
            for n in range(many)
        ]
        began = time.time()
        ids = project.dispatch_all(wanted)
        _wait(project, ids, options)
        pages = [project.ticket(id) for id in ids]
        assert {page.ticket.state for page in pages} == {"done"}, project.states()
        return float(max(page.ticket.moved_at for page in pages) - began)


def _played(folder: Path, task: Task, options: Options) -> Played:
    checkout(task, folder / "repo")
    off = "\n".join([*(MECHANISMS[name] for name in options.without), BY_DEFINITION if options.definitions else ""])
    (folder / "repo" / "legion.toml").write_text(
        f'[checks.test]\nrun = "{task.program("prove", "base")}"\n[agents]\nparallel = {options.agents}\nattempts = 5\n'
        f"[conflicts]\nlook_every = 0.5\n{off}"
    )
    git(folder / "repo", "add", "legion.toml")
    git(folder / "repo", "commit", "-qm", "settings")
    read = json.dumps([str(task.prepared.parents[1]), sys.base_prefix])
    with squad(folder, launch=PLAIN, settings=f"[sandbox]\nread = {read}\n") as one:
        project = one.adopt(Repository.at(folder / "repo"))
        chance = random.Random(f"{_SEED}-{task.name}")
        features = chance.sample(task.features, len(task.features))
        began = time.time()
        ids = project.dispatch_all([_ticket(task, feature, options) for feature in features])
        questions = _wait(project, ids, options)
        pages = {feature: project.ticket(id) for feature, id in zip(features, ids, strict=True)}
        return _measured(folder, task, project, pages, began, options, questions)


def _ticket(task: Task, feature: str, options: Options) -> NewTicket:
    command = task.program("agent", feature, f"{options.seconds:g}")
    return new(task.title(feature), command, text=task.text(feature), prove=[task.program("prove", feature)])


def _wait(project: Project, ids: list[int], options: Options) -> int:
    """Until nothing more happens by itself. How many wait for a person then."""
    squad, last, deadline = project.squad, 0, time.monotonic() + _PATIENCE
    kill_at = time.monotonic() + _KILL_EVERY if options.kills else float("inf")
    while True:
        state = squad.client.wait(project.cwd, ids, after_event=last, timeout=2)
        last = state.last_event
        if state.settled or time.monotonic() > deadline:
            return sum(line.state == "parked" for line in state.tickets)
        if time.monotonic() > kill_at:
            squad.kill()
            squad.start()
            kill_at = time.monotonic() + _KILL_EVERY


def _measured(
    folder: Path,
    task: Task,
    project: Project,
    pages: dict[str, TicketPage],
    began: float,
    options: Options,
    questions: int,
) -> Played:
    told = _events(project)
    done = {feature: page for feature, page in pages.items() if page.ticket.state == "done"}
    wall = max(page.ticket.moved_at for page in pages.values()) - began
    targets = project.hub_git("log", "--first-parent", "--reverse", "--format=%H", "refs/legion/target").split()
    landed_at: dict[str, list[str]] = {}
    for feature, page in done.items():
        landed_at.setdefault(page.landed or targets[-1], []).append(feature)
    wrong, green = _wrong(folder, task, project, targets, landed_at)
    turns = sum(len(page.runs) for page in pages.values())
    written = {feature: [_lines(project, page, n) for n in range(len(page.runs))] for feature, page in pages.items()}
    lost = sum(sum(lines if f not in done else lines[:-1]) for f, lines in written.items())
    alone = _seconds(folder, task)
    return Played(
        features=len(pages),
        landed=len(done),
        green=len(green & set(done)),
        wrong=len(wrong),
        turns=turns,
        wasted=lost / max(1, sum(map(sum, written.values()))),
        conflicts=sum(_is_conflict(event) for event in told),
        predicted=sum(event.kind is EventKind.CONFLICT_PREDICTED for event in told),
        wall=wall,
        oracle=_longest_chain(folder, task) * options.seconds + alone,
        questions=questions,
    )


def _is_conflict(event: Event) -> bool:
    return event.kind is EventKind.TICKET_MOVED and event.data.get("cause") == "conflict"


def _events(project: Project) -> list[Event]:
    store = Store(sqlite_url(project.squad.data.database))
    with store.read() as tx:
        told = events.after(tx, 0, limit=100_000)
    store.close()
    return list(told)


def _lines(project: Project, page: TicketPage, number: int) -> int:
    """How many lines a run wrote, against what the run before it had left."""
    saved = page.runs[number].saved
    before = page.runs[number - 1].saved if number else None
    if saved is None:
        return 0
    start = before or project.hub_git("rev-list", "--max-parents=0", saved).split()[0]
    counted = project.hub_git("diff", "--numstat", start, saved).splitlines()
    return _TOKENS_A_LINE * sum(int(line.split("\t")[0]) for line in counted if line[:1].isdigit())


def _wrong(
    folder: Path, task: Task, project: Project, targets: Sequence[str], landed_at: dict[str, list[str]]
) -> tuple[set[str], set[str]]:
    """The features that were red on the target that brought them, or on a later one; those green on the last one."""
    place = folder / "target"
    landed: list[str] = []
    red, green = set[str](), set[str]()
    for target in targets:
        landed += landed_at.get(target, [])
        if target not in landed_at and target != targets[-1]:
            continue
        _export(project, target, place)
        green = task.proven(landed, place)
        red |= set(landed) - green
    return red, green


def _export(project: Project, commit: str, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    git(place, "init", "--quiet")
    git(place, "fetch", "--quiet", str(project.hub), commit)
    git(place, "checkout", "--quiet", "--force", "FETCH_HEAD")


def _seconds(folder: Path, task: Task) -> float:
    """Of the check and one proof."""
    place = Path(tempfile.mkdtemp(dir=folder)) / "tree"
    checkout(task, place)
    began = time.monotonic()
    task.proves("base", place)
    task.proves(task.features[0], place)
    return time.monotonic() - began


def _longest_chain(folder: Path, task: Task) -> int:
    """The most features of which each conflicts with each other."""
    place = folder / "branches"
    _branches(task, place)
    pairs = {
        pair for pair in itertools.combinations(task.features, 2) if not _merges(place, f"f{pair[0]}", f"f{pair[1]}")
    }
    sizes = range(len(task.features), 1, -1)
    cliques = (
        size
        for size in sizes
        for some in itertools.combinations(task.features, size)
        if pairs.issuperset(itertools.combinations(some, 2))
    )
    return next(cliques, 1)


def _merges(place: Path, one: str, other: str) -> bool:
    return not git(place, "merge-tree", "--write-tree", "--name-only", one, other, check=False).splitlines()[1:]


def _branches(task: Task, place: Path) -> None:
    """The base with a branch per feature."""
    checkout(task, place)
    for feature in task.features:
        git(place, "checkout", "-q", "-b", f"f{feature}", "main")
        shutil.copytree(task.prepared / "gold" / feature, place, dirs_exist_ok=True)
        git(place, "add", "-A")
        git(place, "commit", "-qm", f"feature {feature}")
    git(place, "checkout", "-q", "main")


def _baselines(folder: Path, task: Task, options: Options) -> dict[str, Played]:
    """The plain ways. They do not depend on Legion, so they are kept with the task."""
    kept = task.prepared / f"plain-{options.agents}-{options.seconds:g}.json"
    if not kept.exists():
        found = {
            "git merge in order": _merged(folder / f"{task.name}-merge", task),
            "one branch each": _by_hand(folder / f"{task.name}-hand", task, options, at_once=True),
            "one after another": _by_hand(folder / f"{task.name}-serial", task, options, at_once=False),
        }
        kept.write_text(json.dumps({way: asdict(row) for way, row in found.items()}))
    return {way: Played(**row) for way, row in json.loads(kept.read_text()).items()}


def _merged(place: Path, task: Task) -> Played:
    """What conflicts stays away; nothing is checked."""
    _branches(task, place)
    landed = []
    for feature in task.features:
        if _merges(place, "HEAD", f"f{feature}"):
            git(place, "merge", "-q", "--no-edit", f"f{feature}")
            landed.append(feature)
    green = task.proven(landed, place)
    many = len(task.features)
    return Played(features=many, landed=len(landed), green=len(green), wrong=len(landed) - len(green), turns=many)


def _by_hand(place: Path, task: Task, options: Options, *, at_once: bool) -> Played:
    """One agent after the other, each on what is there; or all at once, and what conflicts once more, alone."""
    _branches(task, place)
    facts = task.facts
    landed, turns, conflicts, waits = [], 0, 0, options.seconds if at_once else 0.0
    for feature in task.features:
        before, began = git(place, "rev-parse", "HEAD").strip(), time.monotonic()
        turns += 1
        if at_once and _merges(place, "HEAD", f"f{feature}"):
            git(place, "merge", "-q", "--no-edit", f"f{feature}")
        else:
            conflicts += at_once
            turns += at_once
            waits += options.seconds
            coupled_programs.put(task.prepared, feature, place, facts)
        if task.proven(("base", feature), place) != {"base", feature}:
            turns += 1
            waits += options.seconds
            shutil.copytree(task.prepared / "combined", place, dirs_exist_ok=True)
        if task.proven(("base", feature), place) == {"base", feature}:
            git(place, "add", "-A")
            git(place, "commit", "-qm", f"feature {feature}", "--allow-empty")
            landed.append(feature)
        else:
            git(place, "reset", "-q", "--hard", before)
        waits += time.monotonic() - began
    green = task.proven(landed, place)
    return Played(
        features=len(task.features),
        landed=len(landed),
        green=len(green),
        wrong=len(landed) - len(green),
        turns=turns,
        conflicts=conflicts,
        wall=waits,
    )
