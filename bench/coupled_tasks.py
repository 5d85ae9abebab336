"""CooperBench's tasks as files: base, real patches, combined patch, tests; and which tests prove which feature.

DATA is a folder that the person fills: `CooperBench` (a checkout) and a repository per library (`click`, `jinja`,
`dirty-equals`, each a clone, or bare as `click.git`). What is made of them is kept in `DATA/prepared`.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench import coupled_programs
from bench.report import say

REPOSITORIES = {
    "pallets_click_task": "click",
    "pallets_jinja_task": "jinja",
    "samuelcolvin_dirty_equals_task": "dirty-equals",
}
_RESOLVE_ALL = ("click-2956",)
"""Here the combined version of the files in conflict alone is red: it needs all of them."""
_PACKAGES = ("pytest", "pytest-mock", "markupsafe", "trio", "pytz", "pydantic", "typing_extensions")
_FORMAT = 3
"""Of what is kept: another number makes it anew."""


@dataclass(frozen=True, kw_only=True)
class Task:
    name: str
    commit: str
    repository: Path
    prepared: Path
    features: tuple[str, ...]
    python: Path

    @property
    def facts(self) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.prepared / "task.json").read_text())
        return found

    def program(self, *words: str) -> str:
        return " ".join(
            [str(self.python), str(self.prepared.parent / "programs.py"), words[0], str(self.prepared), *words[1:]]
        )

    def title(self, feature: str) -> str:
        found = re.search(r"\*\*Title\*\*:\s*(.+)", self.text(feature))
        return f"{self.name} {feature}: {found[1].strip() if found else feature}"[:300]

    def text(self, feature: str) -> str:
        return (self.prepared / "texts" / f"{feature}.md").read_text()

    def proves(self, feature: str, tree: Path) -> bool:
        """Whether a feature's own tests are green on this tree."""
        words = [str(self.python), str(self.prepared.parent / "programs.py"), "prove", str(self.prepared), feature]
        return subprocess.run(words, cwd=tree, capture_output=True, check=False).returncode == 0

    def proven(self, features: Iterable[str], tree: Path) -> set[str]:
        with ThreadPoolExecutor(2) as pool:
            names = list(features)
            return {
                name
                for name, green in zip(names, pool.map(lambda f: self.proves(f, tree), names), strict=True)
                if green
            }


def tasks(data: Path, wanted: Iterable[str]) -> list[Task]:
    """Those whose name (`click-2068`) begins with one of the words, or all, in order."""
    words = tuple(wanted)
    found = []
    python = _environment(data)
    (data / "prepared").mkdir(exist_ok=True)
    shutil.copy(coupled_programs.__file__, data / "prepared" / "programs.py")
    for library, name in REPOSITORIES.items():
        for folder in sorted((data / "CooperBench" / "dataset" / library).glob("task*")):
            key = f"{name}-{folder.name.removeprefix('task')}"
            if not words or key.startswith(words):
                found.append(_prepared(data, folder, key, name, python))
    return found


def _environment(data: Path) -> Path:
    """A virtual environment with what the libraries' tests import."""
    python = data / "environment" / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(data / "environment")], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *_PACKAGES], check=True)
    return python


def _prepared(data: Path, source: Path, key: str, name: str, python: Path) -> Task:
    repository = next(place for place in (data / name, data / f"{name}.git") if place.exists())
    commit = re.findall(r"git checkout ([0-9a-f]{7,40})", (source / "Dockerfile").read_text())[0]
    numbers = sorted(int(one.name.removeprefix("feature")) for one in source.glob("feature*") if one.is_dir())
    task = Task(
        name=key,
        commit=commit,
        repository=repository,
        prepared=data / "prepared" / key,
        features=tuple(str(number) for number in numbers),
        python=python,
    )
    marker = task.prepared / "task.json"
    if not marker.exists() or json.loads(marker.read_text()).get("format") != _FORMAT:
        shutil.rmtree(task.prepared, ignore_errors=True)
        _prepare(task, source)
    proofs = json.loads(marker.read_text())["proofs"]
    # Without a test that is red before it, nothing could tell whether a feature is there.
    return replace(task, features=tuple(name for name in task.features if proofs[name]))


def _prepare(task: Task, source: Path) -> None:
    say(f"   {task.name}: looking which tests prove which feature (once)")
    task.prepared.mkdir(parents=True)
    (task.prepared / "texts").mkdir()
    combined, tests = source / "combined.patch", sorted(_test_files(source))
    golds = {feature: source / f"feature{feature}" / "feature.patch" for feature in task.features}
    files = sorted({name for patch in (combined, *golds.values()) for name in _paths(patch)})
    with _tree(task) as base:
        _keep(base, files, task.prepared / "base")
    with _tree(task, combined) as made:
        _keep(made, files, task.prepared / "combined")
    for feature, patch in golds.items():
        shutil.copy(source / f"feature{feature}" / "feature.md", task.prepared / "texts" / f"{feature}.md")
        with _tree(task, patch) as made:
            _keep(made, _paths(patch), task.prepared / "gold" / feature)
        with _tree(task, source / f"feature{feature}" / "tests.patch") as made:
            _keep(made, _paths(source / f"feature{feature}" / "tests.patch"), task.prepared / "tests" / feature)
    facts: dict[str, object] = {"files": files, "tests": tests, "resolve_all": task.name in _RESOLVE_ALL}
    marker = task.prepared / "task.json"
    marker.write_text(json.dumps(facts))
    keeps, proofs = _selection(task, combined, golds)
    marker.write_text(json.dumps({**facts, "keeps": keeps, "proofs": proofs, "format": _FORMAT}))


def _selection(task: Task, combined: Path, golds: dict[str, Path]) -> tuple[list[str], dict[str, list[str]]]:
    """The tests that all keep green; by feature, those that are red before it, and green with it and with all."""
    with _tree(task) as base, _tree(task, combined) as every:
        keeps = _passing(task, "base", base) & _passing(task, "base", every)
        proofs = {}
        for feature, patch in golds.items():
            with _tree(task, patch) as made, ThreadPoolExecutor(3) as pool:
                before, alone, end = pool.map(functools.partial(_passing, task, feature), (base, made, every))
                keeps &= _passing(task, "base", made)
                proofs[feature] = sorted((alone & end) - before)
    return sorted(keeps), proofs


def _passing(task: Task, feature: str, tree: Path) -> set[str]:
    code = (
        "import json, sys; from pathlib import Path; import programs; "
        "print(json.dumps(sorted(programs.passing(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))))"
    )
    words = [str(task.python), "-c", code, str(task.prepared), feature, str(tree)]
    env = {"PYTHONPATH": str(task.prepared.parent), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=env)
    return set(json.loads(done.stdout))


@contextmanager
def _tree(task: Task, *patches: Path) -> Iterator[Path]:
    """The base with these patches."""
    with tempfile.TemporaryDirectory(prefix="coupled-", ignore_cleanup_errors=True) as folder:
        place = Path(folder) / "tree"
        checkout(task, place)
        for patch in patches:
            for more in (["--ignore-whitespace"], ["--3way"]):
                words = ["git", "apply", *more, str(patch.resolve())]
                if subprocess.run(words, cwd=place, capture_output=True, check=False).returncode == 0:
                    break
            else:
                raise RuntimeError(f"{patch} does not apply")
        yield place


def checkout(task: Task, place: Path) -> None:
    """The base as a repository with one commit."""
    place.mkdir(parents=True)
    words = ["git", "-C", str(task.repository), "archive", task.commit]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as archive:
        subprocess.run(["tar", "-x", "-C", str(place)], stdin=archive.stdout, check=True)
    git(place, "init", "--quiet", "--initial-branch=main")
    git(place, "config", "user.name", "Ada")
    git(place, "config", "user.email", "ada@example.invalid")
    git(place, "config", "maintenance.auto", "false")
    git(place, "add", "-A", "-f")
    git(place, "commit", "-qm", "base")


def git(place: Path, *words: str, check: bool = True) -> str:
    done = subprocess.run(["git", "-C", str(place), *words], capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise RuntimeError(f"git {' '.join(words)}: {done.stderr}")
    return done.stdout


def _keep(tree: Path, names: Iterable[str], to: Path) -> None:
    for name in names:
        if (tree / name).exists():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(tree / name, to / name)


def _paths(patch: Path) -> list[str]:
    return sorted(set(re.findall(r"^\+\+\+ b/(.+?)\s*$", patch.read_text(errors="replace"), re.MULTILINE)))


def _test_files(source: Path) -> set[str]:
    return {
        name
        for patch in source.glob("feature*/tests.patch")
        for name in _paths(patch)
        if "test" in name.rpartition("/")[2]
    }
