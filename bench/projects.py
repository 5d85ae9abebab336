"""The first hour on real projects: `legion init` guesses and tries, then a good change must land and a planted break
must not.

`projects.toml` lists them by name and version. Each is fetched with the client of its package index, once, into
`legion-projects` in the folder for temporary files. Names behind `projects` choose some of them. Without names, those
that this commit has tried already are only shown: an interrupted run goes on where it was.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.report import Report, say
from legion.wire.projects import TrialPage, TryChecks
from tests.support.legion import PLAIN, Project, squad
from tests.support.repository import Repository
from tests.support.settings import WITH_TRIAL

_PATIENCE = 1500.0
_HERE = Path(__file__).parent
_CACHE = Path(tempfile.gettempdir()) / "legion-projects"
_COLUMNS = "{:<27} {:<11} {:<11} {:>6} {:>8} {:>7} {:>7} {:>8}"
_LOOK_AGAIN = 20.0

_COMMENTS = {".py": "# A comment.", **dict.fromkeys((".js", ".go", ".rs", ".c", ".cpp"), "/* A comment. */")}
_TRAP = "__attribute__((constructor)) static void planted(void) { __builtin_trap(); }"
_BREAKS = {
    ".py": 'raise RuntimeError("planted")',
    ".js": 'throw new Error("planted");',
    ".go": 'func init() { panic("planted") }',
    ".rs": 'compile_error!("planted");',
    ".c": _TRAP,
    ".cpp": _TRAP,
}
"""By the suffix of the file: a line at its end that breaks whatever loads it."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    name: str
    version: str
    origin: str
    language: str
    file: str


@dataclass(frozen=True, kw_only=True)
class Tried:
    """What came out for one project."""

    trial: float
    """Seconds of `legion init` with the trial of the checks."""
    canary: str
    """Whether they are red when the code is broken."""
    good: str
    bad: str
    why: str = ""

    @property
    def right(self) -> bool:
        return self.good == "done" and self.refused

    @property
    def refused(self) -> bool:
        """A check failed on the break. Where the good change did not land either, that would say nothing."""
        return self.good == "done" and self.bad == "failed"


def run(folder: Path, report: Report, names: Sequence[str] = ()) -> None:
    known = {one.name: one for one in listed()}
    samples = [known[name] for name in names or known]
    results: list[Tried] = []
    say(_COLUMNS.format("project", "version", "language", "guess", "trial s", "canary", "good", "bad"))
    kept = _CACHE / "tried" / _commit()
    kept.mkdir(parents=True, exist_ok=True)
    for sample in samples:
        file = kept / f"{sample.name}-{sample.version}.json"
        if file.exists() and not names:
            result = Tried(**json.loads(file.read_text()))
        else:
            result = _result(folder / sample.name, sample)
            file.write_text(json.dumps(asdict(result)))
        results.append(result)
        _show(sample, result)
    right = sum(result.right for result in results)
    landed = sum(result.bad == "done" for result in results)
    report.value(
        "projects that work as guessed, missing of all", len(results) - right, "projects", aim=len(results) // 10
    )
    report.value("planted breaks that landed", landed, "breaks", aim=0)


def _commit() -> str:
    return subprocess.run(
        ("git", "rev-parse", "HEAD"), cwd=_HERE, check=True, capture_output=True, text=True
    ).stdout.strip()


def _result(place: Path, sample: Sample) -> Tried:
    try:
        return _tried(place, sample)
    except (AssertionError, subprocess.SubprocessError, OSError) as trouble:
        return Tried(trial=0.0, canary="-", good="-", bad="-", why=str(trouble)[:1000])
    finally:
        shutil.rmtree(place, ignore_errors=True)


def listed() -> list[Sample]:
    table = tomllib.loads((_HERE / "projects.toml").read_text())
    return [
        Sample(name=name, version=one["version"], origin=one["from"], language=one["language"], file=one["file"])
        for name, one in table.items()
    ]


def _show(sample: Sample, result: Tried) -> None:
    good = {"done": "landed"}.get(result.good, result.good)
    bad = "refused" if result.refused else {"done": "LANDED"}.get(result.bad, f"({result.bad})")
    right = "right" if result.right else "wrong"
    say(
        _COLUMNS.format(
            sample.name.removeprefix("golang-github-"),
            sample.version[:11],
            sample.language,
            right,
            f"{result.trial:.1f}",
            result.canary,
            good,
            bad,
        )
    )
    if result.why:
        say(f"    {result.why}")


def _tried(place: Path, sample: Sample) -> Tried:
    repository = _repository(place / "repository", sample)
    with squad(place, launch=PLAIN, settings=WITH_TRIAL) as one:
        began = time.monotonic()
        project = one.init(repository)
        trial = _trial(project)
        seconds = time.monotonic() - began
        good = _change(project, sample, "good", _COMMENTS[Path(sample.file).suffix])
        bad = _change(project, sample, "bad", _BREAKS[Path(sample.file).suffix])
        return Tried(
            trial=seconds,
            canary=trial.sees,
            good=good[0],
            bad=bad[0],
            why=" | ".join(
                [*(trial.lines if trial.sees != "yes" else ()), good[1] or ("" if bad[0] == "failed" else bad[1])]
            ),
        )


def _trial(project: Project) -> TrialPage:
    """As it ends."""
    client = project.squad.client
    found = client.try_checks(TryChecks(cwd=project.cwd))
    while found.state in ("due", "running"):
        found = client.trial(project.cwd, found.number, _LOOK_AGAIN)
    return found


def _change(project: Project, sample: Sample, title: str, line: str) -> tuple[str, str]:
    """The state in which a ticket with this line at the end of the file comes to rest, and why it did not land."""
    append = f"printf '\\n%s\\n' {_quoted(line)} >> {_quoted(sample.file)}"
    ticket = project.dispatch(title, append, max_attempts=1)
    project.until_settled(ticket, patience=_PATIENCE)
    page = project.ticket(ticket)
    if page.ticket.state == "done":
        return "done", ""
    red = [
        f"{receipt.command}: {receipt.tail.strip()[-600:]}" for receipt in page.receipts if receipt.verdict != "green"
    ]
    state = page.ticket.state if page.cause in ("", "checks") else f"{page.ticket.state}: {page.cause}"
    return state, " | ".join([page.ticket.reason or page.ticket.doing, *red[-1:]])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _repository(root: Path, sample: Sample) -> Repository:
    """The published source in one commit, with the tag that a clone would bring: builds read their version from it."""
    root.mkdir(parents=True)
    _command("tar", "xf", str(_archive(sample)), "--strip-components=1", "-C", str(root))
    made = Repository.at(root)
    made.git("init", "--quiet", "--initial-branch=main")
    made.git("config", "user.name", "Ada")
    made.git("config", "user.email", "ada@example.invalid")
    made.git("add", "--all", "--force")
    made.git("commit", "--quiet", "-m", f"{sample.name} {sample.version}")
    made.git("tag", sample.version.partition("+")[0])
    return made


def _archive(sample: Sample) -> Path:
    """The archive of the source, fetched where it is not there yet."""
    place = _CACHE / sample.origin / f"{sample.name}-{sample.version}"
    if not (there := _archives(place)):
        place.mkdir(parents=True, exist_ok=True)
        {"pypi": _from_pypi, "debian": _from_debian}[sample.origin](place, sample)
        there = _archives(place)
    if not there:
        raise AssertionError(f"{sample.name} {sample.version} cannot be fetched here")
    return there[0]


def _archives(place: Path) -> list[Path]:
    return sorted((*place.glob("*.orig.tar.*"), *place.glob("*.tar.gz"), *place.glob("*.tgz")))


def _from_pypi(place: Path, sample: Sample) -> None:
    wanted = f"{sample.name}=={sample.version}"
    _command(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", sample.name, wanted, cwd=place)


def _from_debian(place: Path, sample: Sample) -> None:
    """By the sources of this machine's apt, with an index of our own: most machines have none of source packages."""
    options = list(_apt_options())
    with contextlib.suppress(subprocess.CalledProcessError):
        # It also wants the packaging, which a mirror may lack.
        _command("apt-get", *options, "source", "--download-only", sample.name, cwd=place)


def _apt_options() -> Iterator[str]:
    own = _CACHE / "apt"
    fresh = not own.exists()
    for name in ("parts", "lists/partial", "cache/archives/partial"):
        (own / name).mkdir(parents=True, exist_ok=True)
    for file in (*Path("/etc/apt/sources.list.d").glob("*"), Path("/etc/apt/sources.list")):
        if file.is_file():
            text = file.read_text().replace("Types: deb\n", "Types: deb-src\n")
            lines = (f"deb-src {line[4:]}" if line.startswith("deb ") else line for line in text.splitlines())
            (own / "parts" / file.name).write_text("\n".join(lines) + "\n")
    places = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": str(own / "parts"),
        "Dir::State::lists": str(own / "lists"),
        "Dir::Cache": str(own / "cache"),
    }
    options = [word for name, value in places.items() for word in ("-o", f"{name}={value}")]
    if fresh:
        _command("apt-get", *options, "update")
    yield from options


def _command(*words: str, cwd: Path | None = None) -> None:
    subprocess.run(words, cwd=cwd, check=True, capture_output=True)
