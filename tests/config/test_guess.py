"""What `legion init` writes for sample repositories."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping

import pytest

from legion.config.files.project import ProjectConfig, parse
from legion.config.guess.legion_toml import Guess, guess
from tests.config.python_samples import BUILT, PIP, PYTHON, Sample


def package(**parts: object) -> str:
    return json.dumps(parts)


JEST = package(scripts={"test": "jest"}, devDependencies={"jest": "^29"})


def guessed(files: Mapping[str, str]) -> tuple[Guess, ProjectConfig]:
    found = guess(list(files), files.__getitem__)
    return found, parse(found.text, origin="legion.toml")


SAMPLES: dict[str, Sample] = {
    **PYTHON,
    "node with workspaces of npm": (
        {
            "package.json": package(scripts={"test": "npm test --workspaces"}, workspaces=["packages/*"]),
            "package-lock.json": "",
            ".gitignore": "node_modules\n",
            "packages/a/package.json": JEST,
        },
        "Node",
        "npm ci --no-audit --no-fund",
        ("package-lock.json", "package.json"),
        ["CI=true npm run test"],
    ),
    "node with ava": (
        {"package.json": package(devDependencies={"ava": "^6"}), ".gitignore": "node_modules\n"},
        "Node",
        "npm install --no-package-lock --no-audit --no-fund",
        ("package.json",),
        ["CI=true npx ava"],
    ),
    "node with tsd": (
        {"package.json": package(devDependencies={"tsd": "^0.31"}), "yarn.lock": "", ".gitignore": "node_modules\n"},
        "Node",
        "yarn install --frozen-lockfile",
        ("yarn.lock", "package.json"),
        ["CI=true npx tsd"],
    ),
    "node with types alone": (
        {"package.json": package(scripts={"typecheck": "tsc --noEmit"}), "index.ts": ""},
        "Node",
        "",
        (),
        ["CI=true npm run typecheck"],
    ),
    "kotlin with gradle's own program": (
        {"settings.gradle.kts": "", "gradlew": "", "src/main/kotlin/A.kt": ""},
        "Gradle",
        "",
        (),
        ["sh ./gradlew --no-daemon test"],
    ),
    "ruby with minitest": (
        {"Gemfile": "", "Rakefile": "", "test/test_a.rb": "", ".gitignore": "vendor/bundle\n"},
        "Ruby",
        "BUNDLE_PATH=vendor/bundle bundle install",
        ("Gemfile",),
        ["BUNDLE_PATH=vendor/bundle bundle exec rake test"],
    ),
    "node with a runner and no script": (
        {"package.json": package(devDependencies={"vitest": "^3"}), ".gitignore": "node_modules\n"},
        "Node",
        "npm install --no-package-lock --no-audit --no-fund",
        ("package.json",),
        ["CI=true npx vitest run"],
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
    "a workspace of node whose packages import what others build": (
        {
            "package.json": package(workspaces=["packages/*"], scripts={"build": "tsc -b", "test": "vitest"}),
            "packages/a/package.json": package(name="@x/a", exports={".": "./dist/index.mjs"}),
            ".gitignore": "node_modules\n",
        },
        "Node",
        "npm install --no-package-lock --no-audit --no-fund",
        ("package.json",),
        ["CI=true npm run build && CI=true npm run test"],
    ),
    "a workspace of node whose packages hold what they export": (
        {
            "package.json": package(workspaces=["packages/*"], scripts={"build": "tsc -b", "test": "vitest"}),
            "packages/a/package.json": package(name="@x/a", exports={".": "./lib/index.mjs"}),
            "packages/a/lib/index.mjs": "",
            ".gitignore": "node_modules\n",
        },
        "Node",
        "npm install --no-package-lock --no-audit --no-fund",
        ("package.json",),
        ["CI=true npm run test"],
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
    "node with a workspace of pnpm and nothing of its own": (
        {
            "package.json": '{"scripts": {"test": "pnpm -r test"}}',
            "pnpm-lock.yaml": "",
            "pnpm-workspace.yaml": "",
            ".gitignore": "node_modules",
        },
        "Node",
        "pnpm install --frozen-lockfile",
        ("pnpm-lock.yaml", "package.json", "pnpm-workspace.yaml"),
        ["CI=true pnpm test"],
    ),
    "node with new yarn, known by its lock file": (
        {"package.json": JEST, "yarn.lock": "__metadata:\n  version: 8\n"},
        "Node",
        "yarn install --immutable",
        ("yarn.lock", "package.json"),
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
        "COMPOSER_ALLOW_SUPERUSER=1 composer install --no-interaction --no-progress",
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


def test_a_script_that_looks_at_no_file_is_no_check_and_is_named():
    scripts = {"test": "mocha", "lint": "eslint 'lib/*' bin/"}
    found, config = guessed({"package.json": package(scripts=scripts), "index.js": ""})
    assert [one.name for one in config.checks] == ["test"]
    assert found.notes == ("The script lint is no check: no file that `eslint 'lib/*' bin/` names is here.",)
    _, config = guessed({"package.json": package(scripts=scripts), "bin/ms.js": ""})
    assert [one.name for one in config.checks] == ["test", "lint"]


def test_the_targets_of_a_makefile_become_checks():
    _, config = guessed({"Makefile": "build:\n\tcc a.c\nlint:\n\tclang-tidy\ntest: build\n\t./a.out\nX := 1\n"})
    assert [one.command for one in config.checks] == ["make test", "make build", "make lint"]


def test_a_repository_without_tests_is_called_unchecked():
    found, _ = guessed({"notes.txt": ""})
    assert found.notes == ("No tests were found: changes land unchecked until legion.toml has a [checks.NAME].",)


def test_a_missing_program_of_a_check_is_named():
    found = guess(["go.mod"], lambda name: "", lambda program: program != "go")
    assert found.notes == ("go is not installed: `go test ./...` fails until it is.",)
    files = {"a/pyproject.toml": BUILT, "a/tests/test_a.py": "", "b/go.mod": ""}
    found = guess(list(files), files.__getitem__, lambda program: program in ("python3", "go"))
    assert found.notes == ()


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
