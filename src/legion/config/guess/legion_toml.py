"""The legion.toml that `legion init` writes, guessed from the repository's files. A person reads it before it counts.

Knows only names and contents of files; it starts nothing and reads no disk.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from legion.config.files.project import DEFAULTS
from legion.config.guess.packages import MOST_PACKAGES, dependencies, left_out, package_folders, short_names
from legion.config.guess.python import python, without_tags
from legion.config.guess.repository import Folder, ProjectPart, keep_out_of_git, not_installed, table


@dataclass(frozen=True, kw_only=True)
class Guess:
    kind: str
    """For a person: "Python", "Python and Node", or empty where nothing was recognised."""
    text: str
    """A complete legion.toml."""
    notes: tuple[str, ...] = ()
    """What the person should know about it, each a sentence."""


def guess(
    names: Iterable[str],
    read: Callable[[str], str],
    has: Callable[[str], bool] = lambda program: True,
    *,
    tagged: bool = True,
) -> Guess:
    """`names` are the repository's files as git lists them; `read` returns one's content and may raise OSError; `has`
    tells whether a program is installed: a tool that is missing is not guessed where another can do the job.
    `tagged`: the repository has tags.
    """
    root = Folder(tuple(names), read, has)
    own = _parts(root)
    packages = _packages(root, own)
    tested = any(_TEST in part.checks for part in own)
    parts = own if tested else [*own, *_limited(root, packages)]
    kinds = list(dict.fromkeys(part.kind for part in parts))
    kind = " and ".join(filter(None, [", ".join(kinds[:-1]), *kinds[-1:]]))
    checks = [run for part in parts for run in part.checks.values()]
    notes = [note for part in parts for note in part.notes]
    if tested:
        notes += _apart(own, packages)
    notes += _missing_programs(root, parts, notes)
    notes += () if tagged else without_tags(root)
    if checks:
        notes += left_out(root, checks)
    else:
        notes.append("No tests were found: changes land unchecked until legion.toml has a [checks.NAME].")
    return Guess(kind=kind, text=_text(kind, parts), notes=tuple(dict.fromkeys(notes)))


def _parts(files: Folder) -> list[ProjectPart]:
    found = [part for part in (find(files) for find in LANGUAGES) if part]
    if not any(part.checks for part in found):
        found += [part for part in (find(files) for find in BUILDERS) if part]
    return [part for part in found if part.checks or part.setup]


def _packages(root: Folder, own: list[ProjectPart]) -> dict[str, list[ProjectPart]]:
    """The parts in sub-folders that have checks, or tests where the root has other checks, by folder, none inside
    another. What the root's setup prepares, a workspace for instance, needs no setup of its own."""
    prepared = {part.kind for part in own if part.setup}
    wanted = {_TEST} if any(part.checks for part in own) else set[str]()
    found: dict[str, list[ProjectPart]] = {}
    for folder in package_folders(root):
        if len(found) < MOST_PACKAGES and not any(folder.startswith(f"{above}/") for above in found):
            parts = [part for part in _parts(root.inside(folder)) if part.checks and wanted <= part.checks.keys()]
            if parts:
                found[folder] = [replace(one, setup="", key=()) if one.kind in prepared else one for one in parts]
    return found


def _limited(root: Folder, packages: dict[str, list[ProjectPart]]) -> list[ProjectPart]:
    """Their commands start at the root, their checks carry the folder's name and run for what can break them."""
    names, needs = short_names(packages), dependencies(root, packages)
    return [
        replace(
            part,
            checks={f"{names[folder]}-{name}"[:40]: f"cd {folder} && {run}" for name, run in part.checks.items()},
            setup=f"cd {folder} && {part.setup}" if part.setup else "",
            key=tuple(f"{folder}/{name}" for name in part.key),
            paths=needs[folder] if len(packages) > 1 else (),
        )
        for folder, parts in packages.items()
        for part in parts
    ]


def _apart(own: list[ProjectPart], packages: dict[str, list[ProjectPart]]) -> list[str]:
    """Parts in another language than the root's checks, which therefore do not run their tests."""
    kinds = {part.kind for part in own if part.checks}
    other = [
        f"`cd {folder} && {run}`"
        for folder, parts in packages.items()
        for part in parts
        if part.kind not in kinds and kinds != {"Make"}
        for run in list(part.checks.values())[:1]
    ]
    return [f"Not among the checks, though it has tests of its own: {', '.join(other[:3])}."] if other else []


_FIRST_WORD = re.compile(r"(?:cd \S+ && )?+(?:\w+=(?:\"[^\"]*\"|\S*) )*+([\w.-]+) ")


def _missing_programs(root: Folder, parts: list[ProjectPart], notes: list[str]) -> list[str]:
    """Where a command's program is not installed and no note has said so yet."""
    commands = [run for part in parts for run in (part.setup, *part.checks.values()) if run]
    programs = {found[1]: run for run in reversed(commands) if (found := _FIRST_WORD.match(f"{run} "))}
    missing = [name for name in programs if not root.has(name) and not any(f" {name}," in note for note in notes)]
    return [f"{name} is not installed: `{programs[name]}` fails until it is." for name in missing]


def _text(kind: str, parts: list[ProjectPart]) -> str:
    return "\n".join(filter(None, [_opening(kind), _setup(parts), _checks(parts), _DEFAULTS]))


_DEFAULTS = f"""\
[agents]
parallel = {DEFAULTS.agents.parallel}      # how many work at once
attempts = {DEFAULTS.agents.attempts}      # how often a ticket is tried before it fails

[landing]
mode = "{DEFAULTS.landing.mode.value}"    # or "squash": one commit per ticket; or "rebase": no merge commits

# [review]
# policy = "risky"   # an independent agent reads what looks risky before it lands; or "always"
"""


def _opening(kind: str) -> str:
    seen = f"Guessed from what is here ({kind}), so please read it." if kind else "Nothing here tells how to test it."
    return (
        "# How Legion prepares, checks and lands changes in this repository.\n"
        f"# {seen}\n"
        "# After a change to this file: `legion trust`. All settings: `legion config --explain`.\n"
    )


def _setup(parts: list[ProjectPart]) -> str:
    with_setup = [part for part in parts if part.setup]
    if not with_setup:
        return ""
    commands = [part.setup for part in with_setup]
    run = commands[0] if len(commands) == 1 else " && ".join(f"({command})" for command in commands)
    key = list(dict.fromkeys(name for part in with_setup for name in part.key))
    return (
        "# Prepares dependencies in a worktree; again only when the content of a key file has changed.\n"
        f"[setup]\nrun = {_quoted(run)}\nkey = [{', '.join(_quoted(name) for name in key)}]\n"
    )


def _checks(parts: list[ProjectPart]) -> str:
    named: dict[str, str] = {}
    kinds = Counter(name for part in parts for name in part.checks)
    for part in parts:
        limit = f"paths = [{', '.join(map(_quoted, part.paths))}]\n" if part.paths else ""
        for name, run in part.checks.items():
            key = f"{part.kind.lower().strip('.')}-{name}" if kinds[name] > 1 else name
            named[key] = f"run = {_quoted(run)}\ntimeout = 600\n{limit}"
    if not named:
        return (
            "# Without a check, changes land untested and their tickets show `unchecked`. To have one, name it:\n"
            '# [checks.test]\n# run = "make test"\n'
        )
    rule = "# Every check must end with exit code 0 before a change lands; `timeout` is in seconds.\n"
    if any(part.paths for part in parts):
        rule += "# One with `paths` is left out where all files of a change belong to the `paths` of others.\n"
    return rule + "\n".join(f"[checks.{name}]\n{lines}" for name, lines in named.items())


def _quoted(text: str) -> str:
    """As a TOML string: JSON's escapes are a subset of TOML's for plain ASCII."""
    return json.dumps(text)


# Guesses how repositories other than Python ones are prepared and tested, from their files.
#
# Where a tool keeps its downloads outside the tree (cargo, go, maven, gradle, dotnet), there is no setup: the check
# fetches by itself. One function per kind; each returns None where it finds nothing of its own.

Finder = Callable[[Folder], ProjectPart | None]

_TEST = "test"
_TYPES = ("typecheck", "type-check", "check-types", "check:types", "types:check")
_STYLE = ("lint",)
_RUNNERS = {"vitest": "vitest run", "jest": "jest", "ava": "ava", "mocha": "mocha", "tsd": "tsd"}
"""The command of a test runner that is installed and that no script starts."""
_PLACE = re.compile(r"[A-Za-z][\w.*/-]*")
"""A path or a pattern among the words of a script."""
_MADE = re.compile(r'"(?:\./)?((?:dist|build|lib|out|esm|cjs)/[^"*]+)"')
"""A file of a package that others import, where builds put it."""
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
    build = ""
    if "build" in scripts and "build" not in names and _imports_what_is_built(files, scripts):
        build = f"CI=true {run} build && "
        notes += ("Packages here import what others build, so each check runs `build` first, as CI would.",)
    checks = {name.replace(":", "-"): f"{build}CI=true {run} {name}" for name in names}
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


def _imports_what_is_built(files: Folder, scripts: Mapping[str, str]) -> bool:
    """Whether packages of a workspace are known to others by files that are not there before a build."""
    if "pretest" in scripts or "build" in scripts.get(_TEST, ""):
        return False
    for name in files.like("*/package.json", "*/*/package.json"):
        package, folder = files.json(name), name.removesuffix("package.json")
        entries = _MADE.findall(json.dumps([package.get(key) for key in ("main", "module", "exports")]))
        if package.get("name") and entries and not any(folder + entry in files for entry in entries):
            return True
    return False


def _names_only_missing(files: Folder, script: str) -> bool:
    """Whether a script looks at places of which none is here, so that it would always pass."""
    words = [word.strip("'\"").removeprefix("./") for word in script.split()]
    places = [word for word in words if "/" in word and _PLACE.fullmatch(word)]
    return bool(places) and not any(files.like(place, f"{place.rstrip('/')}/**") for place in places)


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
            missing = not_installed(tool, "its setup fails until it is", "then run `legion doctor --try`")
            return tool, lock, exact if lock else loose, () if files.has(tool) else (missing,)
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
    runners = {
        "rspec": files.like("spec/**/*_spec.rb"),
        "rails test": "bin/rails" in files and files.like("test/**/*_test.rb"),
        "rake test": "Rakefile" in files and files.like("test/**/*.rb"),
    }
    runner = next((name for name, fits in runners.items() if fits), "")
    checks = {"test": f"{bundle} exec {runner}"} if runner else {}
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


def elixir(files: Folder) -> ProjectPart | None:
    if "mix.exs" not in files:
        return None
    setup = "mix local.hex --force --if-missing && mix deps.get" if "mix.lock" in files else ""
    checks = {"test": "mix test"} if files.like("test/**/*_test.exs") else {}
    return ProjectPart(kind="Elixir", checks=checks, setup=setup, key=files.those("mix.lock") if setup else ())


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


def _always(kind: str, run: str, *marks: str) -> Finder:
    return lambda files: ProjectPart(kind=kind, checks={_TEST: run}) if files.like(*marks) else None


go = _always("Go", "go test ./...", "go.mod")
dotnet = _always(".NET", "dotnet test", "*.sln", "*.slnx", "*.csproj", "*.fsproj")
swift = _always("Swift", "swift test", "Package.swift")
LANGUAGES: tuple[Finder, ...] = (
    *(python, node, deno, rust, go, maven, gradle),
    *(ruby, php, dotnet, elixir, swift, cmake),
)

BUILDERS: tuple[Finder, ...] = (make,)
"""Used only where no language has a check: they mostly run the same tests, in an environment of their own."""
