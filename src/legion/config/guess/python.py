"""Guesses from its files how a Python repository is prepared and tested, and where its packages are imported from.

Worktrees move, and what setup made in one may be used in another. So the environment is inside the tree, and is entered
by `.venv/bin/python -m` (scripts contain absolute paths). The project is installed as editable: setup then reads no
source file, so a change of one needs no setup of its own. PYTHONPATH puts the tree's own packages before everything
that is installed, also where the tree has moved since.

Tests must import the tree that they belong to, not a copy that setup installed, also in programs that they start in
other folders. So these folders are put on PYTHONPATH, by their full paths.
"""

from __future__ import annotations

import configparser
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from legion.config.guess.packages import EVIDENCE
from legion.config.guess.repository import Folder, ProjectPart, keep_out_of_git, not_installed, table, text_list

_PLAIN = re.compile(r"[\w./ -]+")
"""A folder that can stand between quotation marks in a command."""
_SETUP_PY = (
    re.compile(r"package_dir\s*=\s*\{\s*[\"']{2}\s*:\s*[\"']([^\"']+)[\"']"),
    re.compile(r"find_(?:namespace_)?packages\(\s*(?:where\s*=\s*)?[\"']([^\"']+)[\"']"),
)
_SETUP_CFG = (
    re.compile(r"^package_dir\s*=\s*\n?\s*=\s*(\S+)", re.MULTILINE),
    re.compile(r"^where\s*=\s*(\S+)", re.MULTILINE),
)
_NO_PACKAGES = ("tests", "test", "docs", "doc", "examples", "benchmarks", "scripts", "tools")
_NO_MODULES = ("setup.py", "conftest.py", "noxfile.py", "tasks.py", "fabfile.py")


def package_roots(files: Folder) -> tuple[str, ...]:
    """Relative to the folder, `.` for itself; empty where nothing is installed that tests could import instead."""
    found = [*_declared(files)]
    if not found and files.like("src/**/*.py"):
        found = ["src"]
    if not found and _is_built(files) and _has_own_packages(files):
        found = ["."]
    found += [f"{member}/{root}" for member in _members(files) for root in package_roots(files.inside(member))]
    clean = [str(PurePosixPath(root)) for root in found]
    there = [root for root in clean if root == "." or any(name.startswith(f"{root}/") for name in files.names)]
    return tuple(dict.fromkeys(root for root in there if _PLAIN.fullmatch(root) and ".." not in root.split("/")))


def python_path(files: Folder) -> str:
    """The beginning of a command; empty where the folder itself is enough."""
    places = ["$PWD" if root == "." else f"$PWD/{root}" for root in package_roots(files)]
    return f'PYTHONPATH="{":".join(places)}" ' if places else ""


def _declared(files: Folder) -> Iterator[str]:
    project = files.toml("pyproject.toml")
    tool = table(project.get("tool"))
    setuptools, poetry, hatch = (table(tool.get(name)) for name in ("setuptools", "poetry", "hatch"))
    packages = table(setuptools.get("packages"))
    for kind in ("find", "find-namespace"):
        yield from _texts(table(packages.get(kind)).get("where"))
    for name, folder in table(setuptools.get("package-dir")).items():
        yield from _parent(name, folder)
    declared = poetry.get("packages")
    for one in declared if isinstance(declared, list) else ():
        yield from _texts(table(one).get("from"))
    targets = table(table(hatch.get("build")).get("targets"))
    for place in (hatch.get("build"), targets.get("wheel")):
        yield from (str(PurePosixPath(folder).parent) for folder in text_list(table(place).get("packages")))
        yield from text_list(table(place).get("sources"))
    yield from _texts(table(table(tool.get("pdm")).get("build")).get("package-dir"))
    yield from _texts(table(table(tool.get("uv")).get("build-backend")).get("module-root"))
    yield from _texts(table(tool.get("maturin")).get("python-source"))
    for name, shapes in (("setup.py", _SETUP_PY), ("setup.cfg", _SETUP_CFG)):
        text = files.read(name)
        yield from (shape[1] for pattern in shapes for shape in pattern.finditer(text))


def _parent(package: str, folder: object) -> Iterator[str]:
    """`{"" = "lib"}` names a root, `{"a.b" = "lib/a/b"}` a package below one."""
    if not isinstance(folder, str):
        return
    parts = package.split(".") if package else []
    path = PurePosixPath(folder)
    if not parts:
        yield folder
    elif list(path.parts[-len(parts) :]) == parts:
        yield str(PurePosixPath(*path.parts[: -len(parts)]))


def _members(files: Folder) -> list[str]:
    """The folders of a uv workspace."""
    workspace = table(table(table(files.toml("pyproject.toml").get("tool")).get("uv")).get("workspace"))
    globs = tuple(f"{glob.rstrip('/')}/pyproject.toml" for glob in text_list(workspace.get("members")))
    without = tuple(f"{glob.rstrip('/')}/pyproject.toml" for glob in text_list(workspace.get("exclude")))
    left_out = files.like(*without) if without else ()
    found = files.like(*globs) if globs else ()
    return [str(PurePosixPath(name).parent) for name in found if name not in left_out and name.count("/")]


def _is_built(files: Folder) -> bool:
    project = files.toml("pyproject.toml")
    return "setup.py" in files or "build-system" in project or "poetry" in table(project.get("tool"))


def _has_own_packages(files: Folder) -> bool:
    packages = {name.split("/")[0] for name in files.like("*/__init__.py", "*/*/__init__.py")} - {*_NO_PACKAGES}
    modules = [name for name in files.like("*.py") if name not in _NO_MODULES and not name.startswith("test_")]
    return bool(packages or modules)


def _texts(value: object) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else text_list(value)


_MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", "pytest.ini", "Pipfile")
_REQUIREMENTS = (
    "requirements.txt",
    "requirements.lock",
    *(f"requirements{joint}{kind}.txt" for joint in "-_./" for kind in ("dev", "test", "tests")),
    *(f"{kind}-requirements.txt" for kind in ("dev", "test")),
    *(f"{folder}/requirements.txt" for folder in ("test", "tests")),
)
_TESTS = ("**/test_*.py", "**/*_test.py", "**/tests.py")
_EXTRAS = ("test", "tests", "testing", "dev")
_TOOLS_THAT_INSTALL = ("poetry", "pdm", "hatch", "uv", "setuptools", "flit", "rye", "pixi", "tox")
_MOST_TESTS = 200
_DISCOVER = re.compile(r"-m unittest (discover(?: +(?:'[^'\n]*'|[\w.*/=-]+))+)")
_FOLDER = re.compile(r"[\w./-]+")
_IMPORT = re.compile(r"^(?:import|from)\s+([a-zA-Z]\w*)(?=[\w.]*\s*(?:$|[,;#]|as\s|import\s))", re.MULTILINE)
_PLAIN_NEED = re.compile(r"[A-Za-z0-9][\w.-]*(?:\[[\w, -]+\])?\s*(?:[<>=!~;].*)?")
"""A requirement as pip reads it, without the variables of other tools."""
_ITSELF = re.compile(r"^[ \t]*(?:-e[ \t]+|--editable[ =][ \t]*)?\.(?:\[[^\]]*\])?[ \t]*(?:#.*)?$", re.MULTILINE)
"""A line of requirements that installs the project."""


_VERSION_OF_GIT = re.compile(r"\b(?:setuptools[-_]scm|hatch[-_]vcs|versioningit|setuptools[-_]git[-_]versioning)\b")


@dataclass(frozen=True)
class _Setup:
    run: str
    key: tuple[str, ...]


def python(files: Folder) -> ProjectPart | None:
    requirements = _requirements(files)
    if not (files.those(*_MARKERS) or requirements or files.like("*.py", "tests/*.py", "test/*.py")):
        return None
    with_pytest = _wants_pytest(files, requirements)
    locked = _locked(files)
    setup = locked or _with_pip(files, requirements, with_pytest)
    # Tests may start programs of the environment by name.
    program = 'PATH="$PWD/.venv/bin:$PATH" .venv/bin/python' if setup else "python3"
    path = python_path(files)
    command = _test_command(files, with_pytest)
    return ProjectPart(
        kind="Python",
        checks={"test": f"{path}{program} {command}"} if command else {},
        setup=setup.run if setup else "",
        key=setup.key if setup else (),
        notes=_missing_tool(files) if locked else (*_missing_tool(files), *_pip_notes(files, requirements, setup)),
    )


def without_tags(files: Folder) -> tuple[str, ...]:
    """A note for a repository that has no tags, where the version of its package comes from them."""
    if not any(_VERSION_OF_GIT.search(files.read(name)) for name in ("pyproject.toml", "setup.py", "setup.cfg")):
        return ()
    note = (
        "The package's version comes from git tags, and there are none here: setup installs it as version 0.1, which "
        "other packages may refuse. Run `git fetch --tags`, then `legion doctor --try`."
    )
    return (note,)


def _requirements(files: Folder) -> tuple[str, ...]:
    """Those for development hold tools that tests do not need: they count where there are none for tests."""
    found = files.those(*_REQUIREMENTS)
    return tuple(name for name in found if "dev" not in name or not any("test" in other for other in found))


def _pip_notes(files: Folder, requirements: tuple[str, ...], setup: _Setup | None) -> Iterator[str]:
    for name in requirements:
        if line := _ITSELF.search(files.read(name)):
            yield f"{name} names `{line[0].strip()}`, the project itself: setup installs it by that file alone."
    project = files.toml("pyproject.toml")
    # Settings of pytest and linters name modules, too, and classifiers do; they install none.
    tools = {name: text for name, text in table(project.get("tool")).items() if name in _TOOLS_THAT_INSTALL}
    groups = table(project.get("dependency-groups"))
    needs = [*_needs(project, _extras(files)), *(groups.get(name) for name in _groups(project))]
    others = (name for name in (*requirements, *files.those(*_MARKERS)) if name not in ("pyproject.toml", "pytest.ini"))
    texts = [
        *map(files.read, others),
        str((needs, tools, project.get("build-system"))),
        setup.run if setup else "python3",
    ]
    named = re.sub(r"[-_.]", "", " ".join(texts).lower())
    unknown = sorted(module for module in _imported(files) if re.sub(r"[-_.]", "", module.lower()) not in named)
    if unknown:
        shown = ", ".join(unknown[:6])
        yield f"The tests import {shown}, which no file here names: if they need it, add it to `run` of [setup]."


def _imported(files: Folder) -> set[str]:
    """The modules of others that the tests import, and pytest for the warnings that its settings name."""
    own = {part for name in files.names if name.endswith(".py") for part in name.removesuffix(".py").split("/")}
    tests = [files.read(name) for name in files.like(*_TESTS, "**/conftest.py")[:_MOST_TESTS]]
    settings = table(table(table(files.toml("pyproject.toml").get("tool")).get("pytest")).get("ini_options"))
    filters = [entry.split(":") for entry in text_list(settings.get("filterwarnings"))]
    named = {parts[2].partition(".")[0].strip() for parts in filters if len(parts) > 2 and "." in parts[2]}
    return named.union(*map(_IMPORT.findall, tests)) - own - sys.stdlib_module_names - {""}


def _wants_pytest(files: Folder, requirements: tuple[str, ...]) -> bool:
    """Is pytest named anywhere, or are the tests no unittest classes?"""
    if files.like("pytest.ini", "conftest.py", "tests/**/conftest.py"):
        return True
    if any("pytest" in files.read(name) for name in (*_MARKERS, *requirements)):
        return True
    if "manage.py" in files:
        return False
    tests = [files.read(name) for name in files.like(*_TESTS)[:20]]
    return any("pytest" in test or "unittest" not in test for test in tests)


def _test_command(files: Folder, with_pytest: bool) -> str:
    """The arguments of the interpreter; empty where there are no tests."""
    if with_pytest:
        return "-m pytest -q" if files.like(*_TESTS, "tests/**/*.py", "test/**/*.py") else ""
    if not files.like(*_TESTS):
        return ""
    if "manage.py" in files:
        return "manage.py test"
    seen = (found[1] for name in files.like(*EVIDENCE) for found in _DISCOVER.finditer(files.read(name)))
    if as_ci := next((words for words in seen if any(files.like(f"{one}/**") for one in _FOLDER.findall(words))), ""):
        return f"-m unittest {as_ci}"
    # unittest looks for packages from the top, which a folder like src is not.
    places = ("tests", "test", *(root for root in package_roots(files) if root != "."))
    folder = next((name for name in places if files.like(f"{name}/**/test*.py")), None)
    return "-m unittest" if folder is None or f"{folder}/__init__.py" in files else f"-m unittest discover -s {folder}"


def _locked(files: Folder) -> _Setup | None:
    """The tool whose lock file exists installs exactly what it lists, if the tool is installed."""
    project = files.toml("pyproject.toml")
    if "uv.lock" in files and files.has("uv"):
        groups = "".join(f" --extra {name}" for name in _extras(files)) + "".join(
            f" --group {name}" for name in _groups(project) if name != "dev"
        )
        return _Setup(f"uv sync --frozen{groups}", ("uv.lock", "pyproject.toml"))
    if "poetry.lock" in files and files.has("poetry"):
        run = "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-interaction --no-root"
        return _Setup(run + "".join(f" --extras {name}" for name in _extras(files)), ("poetry.lock",))
    if "pdm.lock" in files and files.has("pdm"):
        return _Setup("pdm sync --no-self", ("pdm.lock",))
    if "Pipfile.lock" in files and files.has("pipenv"):
        return _Setup("PIPENV_VENV_IN_PROJECT=1 pipenv sync --dev", ("Pipfile.lock",))
    return None


def _missing_tool(files: Folder) -> tuple[str, ...]:
    for lock, tool in (("uv.lock", "uv"), ("poetry.lock", "poetry"), ("pdm.lock", "pdm"), ("Pipfile.lock", "pipenv")):
        if lock in files:
            return () if files.has(tool) else (not_installed(tool, "pip prepares it without what the lock file lists"),)
    return ()


def _with_pip(files: Folder, requirements: tuple[str, ...], with_pytest: bool) -> _Setup | None:
    project = files.toml("pyproject.toml")
    extras, groups = _extras(files), _groups(project)
    wanted = [f"-r {name}" for name in requirements]
    if any(_ITSELF.search(files.read(name)) for name in requirements):
        pass  # pip refuses to install a project twice in one command.
    elif "setup.py" in files or "build-system" in project:
        wanted.append(f"-e '.[{','.join(extras)}]'" if extras else "-e .")
    else:
        wanted += [shlex.quote(need) for need in _needs(project, extras)]
    wanted += [f"--group {name}" for name in groups]
    others = [] if requirements or extras or groups else _needs_of_tools(files)
    wanted += map(shlex.quote, others)
    optional = [need for name in extras for need in _optional(files)[name]]
    declared = [
        *_needs(project, ()),
        *optional,
        *map(files.read, requirements),
        *others,
        *(["pytest"] if groups else []),
    ]
    if with_pytest and not any("pytest" in need for need in declared):
        wanted.append("pytest")
    if not wanted:
        return None
    environment = f"python3 -m venv .venv{keep_out_of_git(files, '.venv')}"
    newer = " && .venv/bin/python -m pip install -q --upgrade pip" if groups else ""  # groups need pip 25.1
    run = f"{environment}{newer} && .venv/bin/python -m pip install -q {' '.join(wanted)}"
    return _Setup(run, (*requirements, *files.those("pyproject.toml", "setup.py", "setup.cfg")))


def _needs(project: object, extras: Iterable[str]) -> list[str]:
    """The requirements of pyproject.toml, with these extras."""
    named = table(table(project).get("project"))
    optional = table(named.get("optional-dependencies"))
    return [*text_list(named.get("dependencies")), *(need for name in extras for need in text_list(optional.get(name)))]


def _needs_of_tools(files: Folder) -> list[str]:
    """What the tests need, where it is written for poetry, pdm, hatch, uv or tox alone."""
    tool = table(files.toml("pyproject.toml").get("tool"))
    poetry, pdm, hatch, uv = (table(tool.get(name)) for name in ("poetry", "pdm", "hatch", "uv"))
    groups, envs = table(poetry.get("group")), table(hatch.get("envs"))
    found = [*table(poetry.get("dev-dependencies")), *text_list(uv.get("dev-dependencies"))]
    for name in _EXTRAS:
        found += table(table(groups.get(name)).get("dependencies"))
        found += text_list(table(pdm.get("dev-dependencies")).get(name))
    for name in ("default", "hatch-test", *_EXTRAS):
        env = table(envs.get(name))
        found += [*text_list(env.get("dependencies")), *text_list(env.get("extra-dependencies"))]
    found += _ini(files, "tox.ini").get("testenv", {}).get("deps", "").splitlines()
    return list(dict.fromkeys(need.strip() for need in text_list(found) if _PLAIN_NEED.fullmatch(need.strip())))


def _ini(files: Folder, name: str) -> Mapping[str, Mapping[str, str]]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(files.read(name))
    except configparser.Error:
        return {}
    return {section: dict(parser[section]) for section in parser.sections()}


def _optional(files: Folder) -> Mapping[str, tuple[str, ...]]:
    """The optional dependencies by name, of pyproject.toml or of setup.cfg."""
    declared = table(table(files.toml("pyproject.toml").get("project")).get("optional-dependencies"))
    old = _ini(files, "setup.cfg").get("options.extras_require", {})
    return {
        **{name: text_list(text.split("\n")) for name, text in old.items()},
        **{name: text_list(needs) for name, needs in declared.items()},
    }


def _extras(files: Folder) -> list[str]:
    """The optional dependencies that the tests need: those with pytest, else the first with a fitting name, and those
    of a module that they import."""
    optional = _optional(files)
    named = [name for name in _EXTRAS if name in optional]
    fitting = [name for name in named if _has_pytest(optional[name])] or named[:1]
    known = {_module(need) for need in _needs(files.toml("pyproject.toml"), fitting)}
    wanted = {module.lower() for module in _imported(files)} - known
    more = [name for name, needs in optional.items() if name not in fitting and wanted & set(map(_module, needs))]
    return [*fitting, *more]


def _module(need: str) -> str:
    """What a requirement is mostly imported as."""
    found = re.match(r"[\w.-]+", need)
    return "" if found is None else re.sub(r"[-.]", "_", found[0].lower())


def _groups(project: object) -> list[str]:
    """The dependency groups with pytest."""
    groups = table(table(project).get("dependency-groups"))
    return [name for name in _EXTRAS if _has_pytest(groups.get(name))][:1]


def _has_pytest(needs: object) -> bool:
    return any(need.startswith("pytest") for need in text_list(needs))
