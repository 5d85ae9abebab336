"""Guesses how repositories other than Python ones are prepared and tested, from their files.

Where a tool keeps its downloads outside the tree (cargo, go, maven, gradle, dotnet), there is no setup: the check
fetches by itself. One function per kind; each returns None where it finds nothing of its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from legion.config.guess.python import python
from legion.config.guess.repository import Folder, ProjectPart, keep_out_of_git, not_installed, table

Finder = Callable[[Folder], ProjectPart | None]

_TEST = "test"
_TYPES = ("typecheck", "type-check", "check-types", "check:types")
_STYLE = ("lint",)
_RUNNERS = {"vitest": "vitest run", "jest": "jest", "ava": "ava", "mocha": "mocha", "tsd": "tsd"}
"""The command of a test runner that is installed and that no script starts."""
_PLACE = re.compile(r"[A-Za-z][\w.*/-]*")
"""A path or a pattern among the words of a script."""
_NODE_LOCKS = {"pnpm": ("pnpm-lock.yaml",), "yarn": ("yarn.lock",), "bun": ("bun.lock", "bun.lockb")}


def node(files: Folder) -> ProjectPart | None:
    if "package.json" not in files:
        return None
    package = files.json("package.json")
    tool, lock, install, notes = _node_tool(files, package)
    named = table(package.get("scripts"))
    scripts = {name: text for name, text in named.items() if isinstance(text, str) and text.strip()}
    run = f"{tool} run" if tool in ("npm", "bun") else tool
    idle = [name for name in (*_TYPES, *_STYLE) if _names_only_missing(files, scripts.get(name, ""))]
    names = [name for name in (_TEST, *_TYPES, *_STYLE) if name in scripts and name not in idle]
    notes += tuple(f"The script {name} is no check: no file that `{scripts[name]}` names is here." for name in idle)
    if "no test specified" in scripts.get(_TEST, ""):
        names.remove(_TEST)
    if not names:
        names = [name for name in scripts if name in ("check", "build")][:1]
    checks = {_check_name(name): f"CI=true {run} {name}" for name in names}
    if _TEST not in names:
        runner = next((one for one in _RUNNERS if one in table(package.get("devDependencies"))), None)
        checks |= {_TEST: f"CI=true npx {_RUNNERS[runner]}"} if runner else {}
    if _TEST in names and len(names) > 1:
        notes += (f"Besides the tests, {', '.join(names[1:])} became checks: remove those that you do not want.",)
    needs = any(package.get(kind) for kind in ("dependencies", "devDependencies", "workspaces"))
    if not needs and "pnpm-workspace.yaml" not in files:
        return ProjectPart(kind="Node", checks=checks, notes=notes)
    berry = _is_berry(files, package.get("packageManager"))
    keep_out = "" if berry else keep_out_of_git(files, "node_modules")
    key = (*((lock,) if lock else ()), *files.those("package.json", ".npmrc", ".yarnrc.yml", "pnpm-workspace.yaml"))
    return ProjectPart(kind="Node", checks=checks, setup=install + keep_out, key=key, notes=notes)


def _is_berry(files: Folder, named: object) -> bool:
    """Yarn from version 2 on, which knows other options and may make no node_modules."""
    modern = re.match(r"yarn@(?!1\.)\d", named) if isinstance(named, str) else None
    return ".yarnrc.yml" in files or modern is not None or "__metadata:" in files.read("yarn.lock")


def _names_only_missing(files: Folder, script: str) -> bool:
    """Whether a script looks at places of which none is here, so that it would always pass."""
    words = [word.strip("'\"").removeprefix("./") for word in script.split()]
    places = [word for word in words if "/" in word and _PLACE.fullmatch(word)]
    return bool(places) and not any(files.like(place, f"{place.rstrip('/')}/**") for place in places)


def _check_name(script: str) -> str:
    return script.replace(":", "-")


def _node_tool(files: Folder, package: object) -> tuple[str, str | None, str, tuple[str, ...]]:
    """The package manager, its lock file, the command that installs exactly what that lists, and notes."""
    named = str(table(package).get("packageManager", ""))
    commands = {
        "pnpm": ("pnpm install --frozen-lockfile", "pnpm install"),
        "yarn": ("yarn install --frozen-lockfile", "yarn install"),
        "bun": ("bun install --frozen-lockfile", "bun install"),
    }
    if _is_berry(files, named):
        commands["yarn"] = ("yarn install --immutable",) * 2
    notes: tuple[str, ...] = ()
    for tool, (exact, loose) in commands.items():
        lock = files.first(*_NODE_LOCKS[tool])
        if not (lock or named.startswith(tool)):
            continue
        # npm knows neither the other tools' workspaces nor their addresses of packages.
        only = tool == "pnpm" and ("pnpm-workspace.yaml" in files or "workspace:" in files.read("package.json"))
        if files.has(tool) or only:
            notes = () if files.has(tool) else (not_installed(tool, "its setup fails until it is"),)
            return tool, lock, exact if lock else loose, notes
        notes = (not_installed(tool, "npm prepares it, perhaps with other versions"),)
    lock = files.first("package-lock.json", "npm-shrinkwrap.json")
    return "npm", lock, f"npm {'ci' if lock else 'install --no-package-lock'} --no-audit --no-fund", notes


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
    composer = "COMPOSER_ALLOW_SUPERUSER=1 composer"  # as root it refuses scripts, and leaves plugins out
    if "test" in table(files.json("composer.json").get("scripts")):
        checks = {"test": f"{composer} test"}
    elif files.those("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"):
        checks = {"test": "vendor/bin/phpunit"}
    else:
        checks = {}
    setup = f"{composer} install --no-interaction --no-progress{keep_out_of_git(files, 'vendor')}"
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
    targets = re.findall(r"^([a-z][\w-]*)\s*:(?!=)", files.read(name), re.MULTILINE)
    test = next((target for target in (_TEST, "check") if target in targets), "")
    others = {target: f"make {target}" for target in ("build", *_TYPES, *_STYLE) if target in targets and test}
    return ProjectPart(kind="Make", checks={"test": f"make {test}", **others} if test else {})


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
