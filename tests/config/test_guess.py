"""What `legion init` writes for sample repositories."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping

import pytest

from legion.config.files.project import ProjectConfig, parse
from legion.config.guess.legion_toml import Guess, guess

BUILT = '[build-system]\nrequires = ["hatchling"]\n[project]\nname = "a"\n'
UNITTEST = "import unittest\n"
PIP = "python3 -m venv .venv && echo '*' > .venv/.gitignore && .venv/bin/python -m pip install -q"


def package(**parts: object) -> str:
    return json.dumps(parts)


JEST = package(scripts={"test": "jest"}, devDependencies={"jest": "^29"})


def guessed(files: Mapping[str, str]) -> tuple[Guess, ProjectConfig]:
    found = guess(list(files), files.__getitem__)
    return found, parse(found.text, origin="legion.toml")


SAMPLES: dict[str, tuple[dict[str, str], str, str, tuple[str, ...], list[str]]] = {
    "python with extras": (
        {"pyproject.toml": BUILT + '[project.optional-dependencies]\ndev = ["pytest>8"]', "tests/test_a.py": ""},
        "Python",
        f"{PIP} -e '.[dev]'",
        ("pyproject.toml",),
        [".venv/bin/python -m pytest -q"],
    ),
    "python with a src folder": (
        {"pyproject.toml": BUILT, "src/a/__init__.py": "", "tests/test_a.py": ""},
        "Python",
        f"{PIP} -e . pytest",
        ("pyproject.toml",),
        ['PYTHONPATH="$PWD/src" .venv/bin/python -m pytest -q'],
    ),
    "python with requirements": (
        {"requirements.txt": "x", "requirements-dev.txt": "pytest", ".gitignore": ".venv/\n", "test_a.py": ""},
        "Python",
        "python3 -m venv .venv && .venv/bin/python -m pip install -q -r requirements.txt -r requirements-dev.txt",
        ("requirements.txt", "requirements-dev.txt"),
        [".venv/bin/python -m pytest -q"],
    ),
    "python that is not built": (
        {"pyproject.toml": "[project]\ndependencies = [\"requests>2; python_version>'3'\"]", "test_a.py": UNITTEST},
        "Python",
        f"{PIP} 'requests>2; python_version>'\"'\"'3'\"'\"''",
        ("pyproject.toml",),
        [".venv/bin/python -m unittest"],
    ),
    "python with groups": (
        {"pyproject.toml": '[dependency-groups]\ntest = ["pytest"]', "tests/test_a.py": ""},
        "Python",
        f"{PIP} --upgrade pip && .venv/bin/python -m pip install -q --group test",
        ("pyproject.toml",),
        [".venv/bin/python -m pytest -q"],
    ),
    "python with uv": (
        {"pyproject.toml": BUILT + '[dependency-groups]\ntest = ["pytest"]', "uv.lock": "", "tests/test_a.py": ""},
        "Python",
        "uv sync --frozen --group test",
        ("uv.lock", "pyproject.toml"),
        [".venv/bin/python -m pytest -q"],
    ),
    "python with poetry": (
        {
            "pyproject.toml": '[tool.poetry.group.dev.dependencies]\npytest = "*"',
            "poetry.lock": "",
            "tests/a_test.py": "",
        },
        "Python",
        "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-interaction --no-root",
        ("poetry.lock",),
        [".venv/bin/python -m pytest -q"],
    ),
    "python with setup.cfg": (
        {"setup.cfg": "[tool:pytest]", "setup.py": "", "pkg/tests/test_a.py": ""},
        "Python",
        f"{PIP} -e . pytest",
        ("setup.py", "setup.cfg"),
        [".venv/bin/python -m pytest -q"],
    ),
    "python with requirements for tests": (
        {"requirements/dev.txt": "tox", "requirements/tests.txt": "pytest", "setup.py": "", "tests/test_a.py": ""},
        "Python",
        f"{PIP} -r requirements/tests.txt -e .",
        ("requirements/tests.txt", "setup.py"),
        [".venv/bin/python -m pytest -q"],
    ),
    "python with extras in setup.cfg": (
        {
            "setup.cfg": "[options.extras_require]\ndev =\n  tox\ntesting =\n  pytest\n",
            "setup.py": "",
            "testing/test_a.py": "",
        },
        "Python",
        f"{PIP} -e '.[testing]'",
        ("setup.py", "setup.cfg"),
        [".venv/bin/python -m pytest -q"],
    ),
    "python with what poetry, hatch and tox alone know": (
        {
            "pyproject.toml": BUILT
            + '[tool.poetry.group.test.dependencies]\npytest = "^8"\nPyYAML = "*"\n'
            + '[tool.hatch.envs.test]\ndependencies = ["trio>=0.2", "{root:uri}"]\n',
            "tox.ini": "[testenv]\ndeps =\n  pretend\n  -r other.txt\n",
            "tests/test_a.py": "",
        },
        "Python",
        f"{PIP} -e . pytest PyYAML 'trio>=0.2' pretend",
        ("pyproject.toml",),
        [".venv/bin/python -m pytest -q"],
    ),
    "node with a runner and no script": (
        {"package.json": package(devDependencies={"vitest": "^3"}), ".gitignore": "node_modules\n"},
        "Node",
        "npm install --no-package-lock --no-audit --no-fund",
        ("package.json",),
        ["CI=true npx vitest run"],
    ),
    "python with tox": (
        {"tox.ini": "pytest", "tests/test_a.py": ""},
        "Python",
        f"{PIP} pytest",
        (),
        [".venv/bin/python -m pytest -q"],
    ),
    "python with unittest in a package": (
        {"a.py": "", "tests/__init__.py": "", "tests/test_a.py": UNITTEST},
        "Python",
        "",
        (),
        ["python3 -m unittest"],
    ),
    "python with unittest in a folder": (
        {"a.py": "", "tests/test_a.py": UNITTEST},
        "Python",
        "",
        (),
        ["python3 -m unittest discover -s tests"],
    ),
    "django": (
        {"manage.py": "", "requirements.txt": "django", "shop/tests.py": "from django.test import TestCase"},
        "Python",
        f"{PIP} -r requirements.txt",
        ("requirements.txt",),
        [".venv/bin/python manage.py test"],
    ),
    "node with npm": (
        {"package.json": JEST, "package-lock.json": ""},
        "Node",
        "npm ci --no-audit --no-fund && echo '*' > node_modules/.gitignore",
        ("package-lock.json", "package.json"),
        ["CI=true npm run test"],
    ),
    "node without a lock": (
        {"package.json": JEST, ".gitignore": "node_modules\n"},
        "Node",
        "npm install --no-package-lock --no-audit --no-fund",
        ("package.json",),
        ["CI=true npm run test"],
    ),
    "node with pnpm": (
        {"package.json": JEST, "pnpm-lock.yaml": "", ".gitignore": "/node_modules/\n"},
        "Node",
        "pnpm install --frozen-lockfile",
        ("pnpm-lock.yaml", "package.json"),
        ["CI=true pnpm test"],
    ),
    "node with old yarn": (
        {"package.json": JEST, "yarn.lock": "", ".gitignore": "node_modules/\n"},
        "Node",
        "yarn install --frozen-lockfile",
        ("yarn.lock", "package.json"),
        ["CI=true yarn test"],
    ),
    "node with new yarn": (
        {"package.json": JEST, "yarn.lock": "", ".yarnrc.yml": ""},
        "Node",
        "yarn install --immutable",
        ("yarn.lock", "package.json", ".yarnrc.yml"),
        ["CI=true yarn test"],
    ),
    "node with bun": (
        {"package.json": JEST, "bun.lock": "", ".gitignore": "node_modules\n"},
        "Node",
        "bun install --frozen-lockfile",
        ("bun.lock", "package.json"),
        ["CI=true bun run test"],
    ),
    "node whose test is npm's placeholder": (
        {"package.json": package(scripts={"test": 'echo "Error: no test specified" && exit 1'})},
        "",
        "",
        (),
        [],
    ),
    "node that can only be built": (
        {"package.json": package(scripts={"build": "tsc"})},
        "Node",
        "",
        (),
        ["CI=true npm run build"],
    ),
    "deno": ({"deno.json": '{"tasks": {"test": "x"}}'}, "Deno", "", (), ["deno task test"]),
    "rust": ({"Cargo.toml": "", "Cargo.lock": ""}, "Rust", "", (), ["cargo test --locked"]),
    "rust workspace": ({"Cargo.toml": "[workspace]"}, "Rust", "", (), ["cargo test --workspace"]),
    "go": ({"go.mod": ""}, "Go", "", (), ["go test ./..."]),
    "maven": ({"pom.xml": "", "mvnw": ""}, "Maven", "", (), ["sh ./mvnw -q -B test"]),
    "gradle": ({"build.gradle.kts": ""}, "Gradle", "", (), ["gradle --no-daemon test"]),
    "ruby": (
        {"Gemfile": "", "Gemfile.lock": "", "spec/a_spec.rb": ""},
        "Ruby",
        "BUNDLE_PATH=vendor/bundle bundle install && echo '*' > vendor/bundle/.gitignore",
        ("Gemfile.lock", "Gemfile"),
        ["BUNDLE_PATH=vendor/bundle bundle exec rspec"],
    ),
    "php": (
        {"composer.json": "{}", "phpunit.xml.dist": "", ".gitignore": "/vendor/\n"},
        "PHP",
        "composer install --no-interaction --no-progress",
        ("composer.json",),
        ["vendor/bin/phpunit"],
    ),
    ".net": ({"App.sln": ""}, ".NET", "", (), ["dotnet test"]),
    "elixir": (
        {"mix.exs": "", "mix.lock": "", "test/a_test.exs": ""},
        "Elixir",
        "mix local.hex --force --if-missing && mix deps.get",
        ("mix.lock",),
        ["mix test"],
    ),
    "swift": ({"Package.swift": ""}, "Swift", "", (), ["swift test"]),
    "cmake with tests": (
        {"CMakeLists.txt": "enable_testing()"},
        "CMake",
        "",
        (),
        ["cmake -S . -B build && cmake --build build && ctest --test-dir build --output-on-failure"],
    ),
    "cmake": ({"CMakeLists.txt": ""}, "CMake", "", (), ["cmake -S . -B build && cmake --build build"]),
    "make": ({"Makefile": "all:\n\ntest: all\n\ttrue\n"}, "Make", "", (), ["make test"]),
    "make with check": ({"makefile": "check:\n"}, "Make", "", (), ["make check"]),
    "make without tests": ({"Makefile": "test := x\nall:\n"}, "", "", (), []),
    "nothing": ({"README.md": ""}, "", "", (), []),
    "broken files": ({"package.json": "[", "pyproject.toml": "=", "deno.json": "3"}, "Deno", "", (), ["deno test"]),
}


@pytest.mark.parametrize(
    ("files", "install", "note"),
    [
        ({"package.json": JEST, "pnpm-lock.yaml": ""}, "npm install", "pnpm, which is not installed: npm prepares it"),
        (
            {"package.json": JEST, "pnpm-lock.yaml": "", "pnpm-workspace.yaml": ""},
            "pnpm install --frozen-lockfile",
            "pnpm, which is not installed: its setup fails until it is",
        ),
        ({"package.json": JEST, "yarn.lock": ""}, "npm install", "yarn, which is not installed"),
        ({"pyproject.toml": BUILT, "poetry.lock": "", "tests/test_a.py": ""}, "pip install", "poetry, which is not"),
        ({"pyproject.toml": BUILT, "uv.lock": "", "tests/test_a.py": ""}, "pip install", "uv, which is not installed"),
    ],
)
def test_a_missing_tool_is_named(files: dict[str, str], install: str, note: str):
    found = guess(list(files), files.__getitem__, lambda program: program in ("npm", "python3"))
    assert (install in found.text, [note in one for one in found.notes]) == (True, [True])


def test_scripts_for_types_and_style_become_checks_and_are_named():
    scripts = {"test": "vitest", "lint": "eslint .", "check:types": "tsc", "start": "vite"}
    found, config = guessed({"package.json": package(scripts=scripts, devDependencies={"vitest": "^3"})})
    assert {one.name: one.command for one in config.checks} == {
        "test": "CI=true npm run test",
        "check-types": "CI=true npm run check:types",
        "lint": "CI=true npm run lint",
    }
    assert found.notes == ("Besides the tests, check:types, lint became checks: remove those that you do not want.",)


def test_the_targets_of_a_makefile_become_checks():
    _, config = guessed({"Makefile": "build:\n\tcc a.c\nlint:\n\tclang-tidy\ntest: build\n\t./a.out\nX := 1\n"})
    assert [one.command for one in config.checks] == ["make test", "make build", "make lint"]


def test_a_repository_without_tests_is_called_unchecked():
    found, _ = guessed({"notes.txt": ""})
    assert found.notes == ("No tests were found: changes land unchecked until legion.toml has a [checks.NAME].",)


def test_a_missing_program_of_a_check_is_named():
    found = guess(["go.mod"], lambda name: "", lambda program: program != "go")
    assert found.notes == ("go is not installed: `go test ./...` fails until it is.",)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_repository_is_recognised(name):
    files, kind, setup, key, checks = SAMPLES[name]
    found, config = guessed(files)
    assert found.kind == kind
    assert config.setup.run == setup
    assert config.setup.key == key
    assert [check.command for check in config.checks] == checks


@pytest.mark.parametrize(
    ("files", "missing", "setup"),
    [
        ({"uv.lock": "", "pyproject.toml": BUILT, "tests/test_a.py": ""}, "uv", f"{PIP} -e . pytest"),
        ({"poetry.lock": "", "pyproject.toml": BUILT, "tests/test_a.py": ""}, "poetry", f"{PIP} -e . pytest"),
        ({"pnpm-lock.yaml": "", "package.json": JEST}, "pnpm", "npm install --no-package-lock --no-audit --no-fund"),
    ],
    ids=["uv", "poetry", "pnpm"],
)
def test_a_tool_that_is_not_installed_is_not_guessed(files, missing, setup):
    found = guess(list(files), files.__getitem__, lambda program: program != missing)
    assert (
        parse(found.text, origin="legion.toml").setup.run.removesuffix(" && echo '*' > node_modules/.gitignore")
        == setup
    )


def test_several_kinds_at_once_are_prepared_and_checked_together():
    found, config = guessed(
        {"requirements.txt": "pytest", "test_a.py": "", "package.json": JEST, "Makefile": "test:\n"}
    )
    assert found.kind == "Python and Node"
    assert [check.name for check in config.checks] == ["python-test", "node-test"]
    assert config.setup.run.startswith("(python3 -m venv .venv && ")
    assert ") && (npm install " in config.setup.run
    assert config.setup.key == ("requirements.txt", "package.json")


def test_a_makefile_helps_where_the_language_has_no_tests():
    found, config = guessed({"setup.py": "", "Makefile": "test:\n"})
    assert found.kind == "Python and Make"
    assert [check.command for check in config.checks] == ["make test"]


def test_parts_in_folders_are_found_where_the_root_is_nothing():
    found, config = guessed(
        {"back/go.mod": "", "front/package.json": JEST, "front/yarn.lock": "", "odd name/go.mod": ""}
    )
    assert found.kind == "Go and Node"
    assert {check.name: check.command for check in config.checks} == {
        "back-test": "cd back && go test ./...",
        "front-test": "cd front && CI=true yarn test",
    }
    assert config.setup.key == ("front/yarn.lock", "front/package.json")


def test_two_kinds_in_one_folder_keep_both_their_checks():
    _, config = guessed({"app/go.mod": "", "app/package.json": JEST})
    assert sorted(check.command for check in config.checks) == [
        "cd app && CI=true npm run test",
        "cd app && go test ./...",
    ]


def test_without_a_check_the_file_says_what_that_means():
    found, config = guessed({})
    assert config.checks == ()
    assert "`unchecked`" in found.text
    uncommented = "".join(
        line.removeprefix("# ") for line in found.text.splitlines(keepends=True) if line.startswith(_AT_HAND)
    )
    assert tomllib.loads(uncommented) == {"checks": {"test": {"run": "make test"}}, "review": {"policy": "risky"}}


_AT_HAND = ("# [", "# run", "# policy")
"""How lines begin that a person may take the mark away from."""


def test_a_file_that_cannot_be_read_is_as_good_as_empty():
    def broken(name: str) -> str:
        raise FileNotFoundError(name)

    assert guess(["package.json", "Makefile"], broken).kind == ""
