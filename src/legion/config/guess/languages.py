"""Guesses how repositories other than Python ones are prepared and tested, from their files.

Where a tool keeps its downloads outside the tree (cargo, go, maven, gradle, dotnet), there is no setup: the check
fetches by itself. One function per kind; each returns None where it finds nothing of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from legion.config.guess.python import python
from legion.config.guess.repository import Folder, ProjectPart, keep_out_of_git, table

Finder = Callable[[Folder], ProjectPart | None]


def node(files: Folder) -> ProjectPart | None:
    if "package.json" not in files:
        return None
    package = files.json("package.json")
    tool, lock, install = _node_tool(files, package)
    scripts = table(package.get("scripts"))
    run = f"{tool} run" if tool in ("npm", "bun") else tool
    test = scripts.get("test")
    if isinstance(test, str) and test.strip() and "no test specified" not in test:
        checks = {"test": f"CI=true {run} test"}
    else:
        name = next((name for name in ("typecheck", "check", "build") if name in scripts), "")
        checks = {name: f"CI=true {run} {name}"} if name else {}
    needs = any(package.get(kind) for kind in ("dependencies", "devDependencies", "workspaces"))
    if not needs:
        return ProjectPart(kind="Node", checks=checks)
    keep_out = keep_out_of_git(files, "node_modules") if ".yarnrc.yml" not in files else ""
    key = (*((lock,) if lock else ()), *files.those("package.json", ".npmrc", ".yarnrc.yml", "pnpm-workspace.yaml"))
    return ProjectPart(kind="Node", checks=checks, setup=install + keep_out, key=key)


def _node_tool(files: Folder, package: object) -> tuple[str, str | None, str]:
    """The package manager, its lock file, and the command that installs exactly what that lists."""
    named = str(table(package).get("packageManager", ""))
    lock = files.first("pnpm-lock.yaml")
    if (lock or named.startswith("pnpm")) and files.has("pnpm"):
        return "pnpm", lock, "pnpm install --frozen-lockfile" if lock else "pnpm install"
    lock = files.first("yarn.lock")
    if (lock or named.startswith("yarn")) and files.has("yarn"):
        modern = ".yarnrc.yml" in files or bool(re.match(r"yarn@[2-9]", named))
        return "yarn", lock, "yarn install --immutable" if modern else "yarn install --frozen-lockfile"
    lock = files.first("bun.lock", "bun.lockb")
    if (lock or named.startswith("bun")) and files.has("bun"):
        return "bun", lock, "bun install --frozen-lockfile" if lock else "bun install"
    lock = files.first("package-lock.json", "npm-shrinkwrap.json")
    return "npm", lock, f"npm {'ci' if lock else 'install --no-package-lock'} --no-audit --no-fund"


def deno(files: Folder) -> ProjectPart | None:
    name = files.first("deno.json", "deno.jsonc")
    if name is None:
        return None
    own = "test" in table(files.json(name).get("tasks"))
    return ProjectPart(kind="Deno", checks={"test": "deno task test" if own else "deno test"})


def rust(files: Folder) -> ProjectPart | None:
    if "Cargo.toml" not in files:
        return None
    flags = (" --workspace" if "[workspace]" in files.read("Cargo.toml") else "") + (
        " --locked" if "Cargo.lock" in files else ""
    )
    return ProjectPart(kind="Rust", checks={"test": f"cargo test{flags}"})


def go(files: Folder) -> ProjectPart | None:
    return ProjectPart(kind="Go", checks={"test": "go test ./..."}) if "go.mod" in files else None


def maven(files: Folder) -> ProjectPart | None:
    if "pom.xml" not in files:
        return None
    return ProjectPart(kind="Maven", checks={"test": f"{'sh ./mvnw' if 'mvnw' in files else 'mvn'} -q -B test"})


def gradle(files: Folder) -> ProjectPart | None:
    if not files.those("build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"):
        return None
    program = "sh ./gradlew" if "gradlew" in files else "gradle"
    return ProjectPart(kind="Gradle", checks={"test": f"{program} --no-daemon test"})


def ruby(files: Folder) -> ProjectPart | None:
    if "Gemfile" not in files:
        return None
    bundle = "BUNDLE_PATH=vendor/bundle bundle"
    if files.like("spec/**/*_spec.rb"):
        checks = {"test": f"{bundle} exec rspec"}
    elif "bin/rails" in files and files.like("test/**/*_test.rb"):
        checks = {"test": f"{bundle} exec rails test"}
    elif "Rakefile" in files and files.like("test/**/*.rb"):
        checks = {"test": f"{bundle} exec rake test"}
    else:
        checks = {}
    setup = f"{bundle} install{keep_out_of_git(files, 'vendor/bundle')}"
    return ProjectPart(kind="Ruby", checks=checks, setup=setup, key=files.those("Gemfile.lock", "Gemfile"))


def php(files: Folder) -> ProjectPart | None:
    if "composer.json" not in files:
        return None
    if "test" in table(files.json("composer.json").get("scripts")):
        checks = {"test": "composer test"}
    elif files.those("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"):
        checks = {"test": "vendor/bin/phpunit"}
    else:
        checks = {}
    setup = f"composer install --no-interaction --no-progress{keep_out_of_git(files, 'vendor')}"
    return ProjectPart(kind="PHP", checks=checks, setup=setup, key=files.those("composer.lock", "composer.json"))


def dotnet(files: Folder) -> ProjectPart | None:
    if not files.like("*.sln", "*.slnx", "*.csproj", "*.fsproj"):
        return None
    return ProjectPart(kind=".NET", checks={"test": "dotnet test"})


def elixir(files: Folder) -> ProjectPart | None:
    if "mix.exs" not in files:
        return None
    setup = "mix local.hex --force --if-missing && mix deps.get" if "mix.lock" in files else ""
    checks = {"test": "mix test"} if files.like("test/**/*_test.exs") else {}
    return ProjectPart(kind="Elixir", checks=checks, setup=setup, key=files.those("mix.lock") if setup else ())


def swift(files: Folder) -> ProjectPart | None:
    return ProjectPart(kind="Swift", checks={"test": "swift test"}) if "Package.swift" in files else None


def cmake(files: Folder) -> ProjectPart | None:
    if "CMakeLists.txt" not in files:
        return None
    build = "cmake -S . -B build && cmake --build build"
    if re.search(r"\b(enable_testing|add_test|include\s*\(\s*CTest)\b", files.read("CMakeLists.txt"), re.IGNORECASE):
        return ProjectPart(kind="CMake", checks={"test": f"{build} && ctest --test-dir build --output-on-failure"})
    return ProjectPart(kind="CMake", checks={"build": build})


def make(files: Folder) -> ProjectPart | None:
    name = files.first("GNUmakefile", "makefile", "Makefile")
    if name is None:
        return None
    target = re.search(r"^(test|check)\s*:(?!=)", files.read(name), re.MULTILINE)
    return ProjectPart(kind="Make", checks={"test": f"make {target[1]}"} if target else {})


LANGUAGES: tuple[Finder, ...] = (
    python,
    node,
    deno,
    rust,
    go,
    maven,
    gradle,
    ruby,
    php,
    dotnet,
    elixir,
    swift,
    cmake,
)

BUILDERS: tuple[Finder, ...] = (make,)
"""Used only where no language has a check: they mostly run the same tests, in an environment of their own."""
