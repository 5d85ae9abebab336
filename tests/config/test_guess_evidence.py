"""What `legion init` finds out beyond single commands: packages, what CI runs, what tests import."""

from __future__ import annotations

import json
import re

import pytest

from legion.config.guess.fix import fixed
from legion.config.guess.repository import Folder
from tests.config.python_samples import BUILT
from tests.config.test_guess import JEST, guessed, package


def test_packages_are_checked_for_changes_of_what_they_depend_on():
    files = {
        "package.json": package(workspaces=["packages/*"]),
        "package-lock.json": "",
        "packages/base/package.json": package(name="@x/base", scripts={"test": "jest"}),
        "packages/base/index.js": "",
        "packages/app/package.json": package(name="@x/app", scripts={"test": "jest"}, dependencies={"@x/mid": "*"}),
        "packages/mid/package.json": package(name="@x/mid", scripts={"test": "jest"}, dependencies={"@x/base": "*"}),
        "services/api/go.mod": "module example.com/api\n",
        "services/api/main_test.go": 'const schema = "../../packages/base/schema.json"',
        "examples/demo/package.json": JEST,
    }
    _, config = guessed(files)
    assert config.setup.run.startswith("npm ci ")
    assert {one.name: (one.command, one.paths) for one in config.checks} == {
        "base-test": ("cd packages/base && CI=true npm run test", ("packages/base",)),
        "app-test": ("cd packages/app && CI=true npm run test", ("packages/app", "packages/base", "packages/mid")),
        "mid-test": ("cd packages/mid && CI=true npm run test", ("packages/mid", "packages/base")),
        "api-test": ("cd services/api && go test ./...", ("services/api", "packages/base")),
    }


def test_packages_are_checked_where_the_root_has_checks_but_no_tests():
    # The layout of many workspaces: `build` at the top, the tests in the packages.
    files = {
        "package.json": package(scripts={"build": "npm run build --workspaces"}, workspaces=["src/*"]),
        "package-lock.json": "",
        "src/files/package.json": package(name="@x/files", scripts={"test": "vitest run"}),
        "src/files/index.ts": "",
        "src/plain/package.json": package(name="@x/plain", scripts={"build": "tsc"}),
        "src/git/go.mod": "module example.com/git\n",
    }
    found, config = guessed(files)
    assert {one.name: (one.command, one.paths) for one in config.checks} == {
        "build": ("CI=true npm run build", ()),
        "files-test": ("cd src/files && CI=true npm run test", ("src/files",)),
        "git-test": ("cd src/git && go test ./...", ("src/git",)),
    }
    assert not found.notes, found.notes


def test_a_package_with_too_many_files_to_read_is_always_checked():
    many = {f"a/{number}.go": "" for number in range(501)}
    _, config = guessed({"a/go.mod": "module a\n", "b/go.mod": "module b\n", **many})
    assert {one.name: one.paths for one in config.checks} == {"a-test": (), "b-test": ("b",)}


def test_tests_in_another_language_than_the_root_are_named():
    found, config = guessed({"setup.py": "", "tests/test_a.py": "", "web/package.json": JEST})
    assert [one.name for one in config.checks] == ["test"]
    assert "Not among the checks, though it has tests of its own: `cd web && CI=true npm run test`." in found.notes


CI_RUNS = {
    ".github/workflows/ci.yml": "jobs:\n  a:\n    steps:\n      - name: Run pytest and mypy\n"
    "      - run: pip install ruff mypy\n      - run: mypy src\n"
    "      - run: |\n          ruff check .\n          pytest -x\n",
    ".gitlab-ci.yml": "test:\n  script:\n    - python -m mypy src\n    - npm run lint\n",
    "noxfile.py": 'session.install("pylint")\nsession.run("pylint", "pkg", "--strict")\n',
    ".pre-commit-config.yaml": "repos:\n- hooks:\n  - id: flake8\n  - id: mypy\n",
    "tox.ini": "[testenv:types]\ndeps = pyright\ncommands =\n  pyright {posargs}\n",
    "Makefile": "bandit:\n\tbandit -r src\n",
}


def test_what_ci_runs_beyond_the_checks_is_named():
    found, _ = guessed({"tests/test_a.py": "", "setup.py": "", **CI_RUNS})
    (note,) = [note for note in found.notes if note.startswith("CI also runs")]
    named = dict(re.findall(r"`([^`]+)` \(([^)]+)\)", note))
    assert named == {
        "mypy src": ".github/workflows/ci.yml",
        "ruff check .": ".github/workflows/ci.yml",
        "npm run lint": ".gitlab-ci.yml",
        "pylint pkg --strict": "noxfile.py",
        "flake8": ".pre-commit-config.yaml",
    }
    assert note.endswith("and 2 more: not among the checks. Add a [checks.NAME] for what changes must pass.")


def test_what_a_script_that_is_a_check_runs_is_no_difference_to_ci():
    scripts = package(scripts={"test": "vitest", "lint": "eslint ."}, devDependencies={"vitest": "^3"})
    runs = "steps:\n  - run: npx eslint .\n  - run: pnpm lint\n  - run: npx vitest run\n"
    found, _ = guessed({"package.json": scripts, ".github/workflows/ci.yml": runs})
    assert not [note for note in found.notes if "CI also" in note]


def test_what_the_tests_import_and_nothing_installs_is_named():
    test = '"""Taken\nfrom the code.\n"""\nimport os\nimport a\nimport pytest\nimport yaml\nimport h2.core\n'
    test += "from trustme import CA\n"
    settings = 'classifiers = ["Framework :: Trio"]\n[tool.pytest.ini_options]\nfilterwarnings = ["error::trio.Old"]\n'
    settings += '[project.optional-dependencies]\nhttp2 = ["h2>=3"]\nzip = ["brotli"]\n'
    files = {
        "pyproject.toml": f"{BUILT}{settings}",
        "a.py": "",
        "tests/test_a.py": test,
        "requirements.txt": "-e .[full]\n\n# More\nPyYAML",
    }
    found, _ = guessed(files)
    assert found.notes == (
        "requirements.txt names `-e .[full]`, the project itself: setup installs it by that file alone.",
        "The tests import trio, trustme, which no file here names: if they need it, add it to `run` of [setup].",
    )


def test_an_optional_dependency_whose_module_the_tests_import_is_installed():
    extras = '[project.optional-dependencies]\nzip = ["zstandard>=0.20"]\nhttp2 = ["h2"]\n'
    found, _ = guessed({"pyproject.toml": BUILT + extras, "a.py": "", "tests/test_a.py": "import zstandard as z\n"})
    assert "pip install -q -e '.[zip]' pytest" in found.text
    assert not [note for note in found.notes if "import" in note]


PYTEST = 'PYTHONPATH="$PWD/src" PATH="$PWD/.venv/bin:$PATH" .venv/bin/python -m pytest -q'


def config(setup: str, test: str) -> str:
    lines = (
        "[setup]",
        f"run = {json.dumps(setup)}  # ours",
        "[checks.test]",
        f"run = {json.dumps(test)}",
        "timeout = 5",
    )
    return "\n".join((*lines, "[checks.other]", "run = 'true'\n"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            config("pip install -q '.[test]'", "python -m pytest"),
            config("pip install -q -e '.[test]'", 'PYTHONPATH="$PWD/src" python -m pytest'),
        ),
        (config("", "PYTHONPATH=old make test"), config("", PYTEST)),
        ('[checks.test]\nrun = """\npython -m pytest"""\n', None),
        ('[checks.other]\nrun = "make other"\n', None),
    ],
    ids=["a copy and no path", "as init would", "more lines than one", "nothing known"],
)
def test_a_fix_changes_the_commands_and_nothing_else(before: str, after: str | None):
    files = {"pyproject.toml": BUILT, "src/a.py": "", "tests/test_a.py": "import pytest"}
    assert fixed(before, Folder(tuple(files), files.__getitem__)) == after
