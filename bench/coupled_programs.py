"""What runs inside of a task's trees: the scripted agent and the proofs. It is copied, so it imports nothing of ours.

`python programs.py agent PREPARED FEATURE SECONDS` works as the perfect agent does: its first attempt is the feature's
real patch, put on what is there; after a conflict it takes the combined version of the files in conflict, and after red
checks that of all files. `python programs.py prove PREPARED FEATURE` runs the feature's own tests, or with `base` those
that every feature keeps green.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

_MARKED = re.compile(r"^<{7} ", re.MULTILINE)


def work(prepared: Path, feature: str, tree: Path, brief: str) -> None:
    """One attempt in this tree. `brief` is what it was asked."""
    facts = json.loads((prepared / "task.json").read_text())
    files: list[str] = facts["files"]
    marked = [name for name in files if (tree / name).exists() and _MARKED.search((tree / name).read_text())]
    if marked:
        for name in files if facts["resolve_all"] else marked:
            _copy(prepared / "combined" / name, tree / name)
    elif "These commands failed on" in brief:
        for name in files:
            _copy(prepared / "combined" / name, tree / name)
    else:
        put(prepared, feature, tree, facts)
        if not _changed(tree):
            # Another's resolution brought its files in part.
            for name in files:
                _copy(prepared / "combined" / name, tree / name)


def put(prepared: Path, feature: str, tree: Path, facts: dict[str, object]) -> bool:
    """The real patch on what is there, or the combined version if both changed the same lines. Whether it was clean."""
    clean = True
    gold = prepared / "gold" / feature
    for file in sorted(path for path in gold.rglob("*") if path.is_file()):
        name = file.relative_to(gold)
        there, base = tree / name, prepared / "base" / name
        if not there.exists() or (base.exists() and there.read_bytes() == base.read_bytes()):
            _copy(file, there)
        elif there.read_bytes() != (prepared / "combined" / name).read_bytes():
            words = ["git", "merge-file", "-p", "--quiet", str(there), str(base), str(file)]
            merged = subprocess.run(words, capture_output=True, check=False)
            if merged.returncode == 0:
                there.write_bytes(merged.stdout)
            else:
                clean = False
    if not clean:
        files = (
            facts["files"]
            if facts["resolve_all"]
            else [str(f.relative_to(gold)) for f in gold.rglob("*") if f.is_file()]
        )
        assert isinstance(files, list)
        for name in files:
            _copy(prepared / "combined" / name, tree / name)
    return clean


def prove(prepared: Path, feature: str, tree: Path) -> int:
    facts = json.loads((prepared / "task.json").read_text())
    wanted: list[str] = facts["keeps"] if feature == "base" else facts["proofs"][feature]
    if not wanted:
        return 0
    green = passing(prepared, feature, tree, wanted)
    missing = [name for name in wanted if name not in green]
    print(f"{len(missing)} of {len(wanted)} tests are red", *missing[:20], sep="\n  ")
    return 1 if missing else 0


def passing(prepared: Path, feature: str, tree: Path, wanted: list[str] | None = None) -> set[str]:
    """The tests of a feature's version of the test files that pass on this tree."""
    facts = json.loads((prepared / "task.json").read_text())
    with tempfile.TemporaryDirectory(prefix="proof-") as folder:
        place = Path(folder)
        shutil.copytree(tree / "tests", place / "tests")
        if feature != "base":
            shutil.copytree(prepared / "tests" / feature, place, dirs_exist_ok=True)
        (place / "none.ini").write_text("[pytest]\n")
        python = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(place / "none.ini")]
        # Not by name: a name with odd characters would be no argument.
        known = {name.partition("::")[0] for name in wanted} if wanted is not None else None
        files = sorted(facts["tests"] if known is None else known)
        there = [name for name in files if (place / name).exists()]
        env = {**os.environ, "PYTHONPATH": f"{tree / 'src'}:{tree}", "PYTHONDONTWRITEBYTECODE": "1", "HOME": folder}
        run = [*python, "--rootdir", folder, f"--junitxml={folder}/out.xml", *there]
        subprocess.run(run, cwd=place, env=env, capture_output=True, check=False, timeout=120)
        return _green(place / "out.xml")


def _changed(tree: Path) -> bool:
    words = ["git", "-C", str(tree), "status", "--porcelain"]
    return bool(subprocess.run(words, capture_output=True, check=True).stdout)


def _green(report: Path) -> set[str]:
    try:
        cases = ElementTree.parse(report).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        return set()
    good = (one for one in cases if not any(child.tag in ("failure", "error", "skipped") for child in one))
    return {_name(one.get("classname") or "", one.get("name") or "") for one in good}


def _name(module: str, name: str) -> str:
    """As `tests/test_x.py::Class::name`."""
    parts = module.split(".")
    at = next((place for place, part in enumerate(parts) if part.startswith("test_")), len(parts) - 1)
    return "::".join(["/".join(parts[: at + 1]) + ".py", *parts[at + 1 :], name])


def _copy(file: Path, to: Path) -> None:
    if file.exists():
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(file.read_bytes())


def main() -> int:
    word, folder, feature, *rest = sys.argv[1:]
    prepared, tree = Path(folder), Path.cwd()
    if word == "prove":
        return prove(prepared, feature, tree)
    brief = "" if sys.stdin.isatty() else sys.stdin.read()
    time.sleep(float(rest[0]))
    work(prepared, feature, tree, brief)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
