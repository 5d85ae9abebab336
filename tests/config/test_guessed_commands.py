"""The commands that `legion init` guesses for sample repositories, really run."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from legion.config.files.project import ProjectConfig, parse
from legion.config.guess.legion_toml import guess
from legion.system.process import FinishedProcess, run
from tests.config.test_guess import package


def made(root: Path, files: Mapping[str, str]) -> ProjectConfig:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    names = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    return parse(guess(names, lambda name: (root / name).read_text()).text, origin="legion.toml")


def shell(command: str, root: Path) -> FinishedProcess:
    offline = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "npm_config_offline": "true"}
    return run(["sh", "-c", command], cwd=root, env={**os.environ, **offline}, timeout=100)


def assert_passes_then_fails(config: ProjectConfig, root: Path, breakage: str) -> None:
    """Every check is green, and red once the sources are broken."""
    for check in config.checks:
        finished = shell(check.command, root)
        assert finished.code == 0, finished.complaint
    source, content = breakage.split("=", 1)
    (root / source).write_text(content)
    assert [shell(check.command, root).code == 0 for check in config.checks] == [False]


PYTHON_TEST = """\
import unittest
import code_here

class Test(unittest.TestCase):
    def test_it(self):
        self.assertEqual(code_here.answer(), 42)
"""


@pytest.mark.parametrize("package_file", [{}, {"tests/__init__.py": ""}], ids=["folder", "package"])
def test_python_without_dependencies_is_checked_as_guessed(tmp_path, package_file):
    files = {"code_here.py": "def answer(): return 42\n", "tests/test_it.py": PYTHON_TEST, **package_file}
    # Of another length: Python takes a source of the same second and length for the one that it has compiled.
    assert_passes_then_fails(made(tmp_path, files), tmp_path, "code_here.py=def answer(): return 4100\n")


@pytest.mark.slow
def test_python_with_dependencies_is_prepared_once_and_checked_in_another_tree(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    with zipfile.ZipFile(first / "needed-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("needed.py", "value = 42\n")
        wheel.writestr("needed-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: needed\nVersion: 1.0\n")
        wheel.writestr("needed-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("needed-1.0.dist-info/RECORD", "")
    code = "import needed\ndef answer(): return needed.value\n"
    files = {"requirements.txt": "./needed-1.0-py3-none-any.whl\n", "src/code_here.py": code, "test_it.py": PYTHON_TEST}
    config = made(first, files)
    prepared = shell(config.setup.run, first)
    assert prepared.code == 0, prepared.complaint
    assert shell("git init -q . && git status --porcelain .venv", first).stdout == b""

    first.rename(second)
    assert_passes_then_fails(config, second, "src/code_here.py=def answer(): return 41\n")


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_node_is_prepared_and_checked_as_guessed(tmp_path):
    lock = {
        "name": "a",
        "lockfileVersion": 3,
        "requires": True,
        "packages": {
            "": {"name": "a", "dependencies": {"needed": "file:./needed"}},
            "needed": {"version": "1.0.0"},
            "node_modules/needed": {"resolved": "needed", "link": True},
        },
    }
    config = made(
        tmp_path,
        {
            "package.json": package(
                name="a", scripts={"test": "node test.js"}, dependencies={"needed": "file:./needed"}
            ),
            "package-lock.json": json.dumps(lock),
            "needed/package.json": package(name="needed", version="1.0.0"),
            "needed/index.js": "module.exports = 42\n",
            "test.js": "if (require('needed') !== 42) process.exit(1)\n",
        },
    )
    prepared = shell(config.setup.run, tmp_path)
    assert prepared.code == 0, prepared.complaint
    assert_passes_then_fails(config, tmp_path, "needed/index.js=module.exports = 41\n")


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_is_checked_as_guessed(tmp_path):
    config = made(tmp_path, {"Makefile": "test:\n\t@grep -q 42 answer\n", "answer": "42"})
    assert_passes_then_fails(config, tmp_path, "answer=41")
