"""Finds the folders that a Python repository's packages are imported from, as its build files declare them.

Tests must import the tree that they belong to, not a copy that setup installed, also in programs that they start in
other folders. So these folders are put on PYTHONPATH, by their full paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from legion.config.guess.repository import Folder, table, text_list

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
    packages = {name.split("/")[0] for name in files.like("*/__init__.py")} - set(_NO_PACKAGES)
    modules = [name for name in files.like("*.py") if name not in _NO_MODULES and not name.startswith("test_")]
    return bool(packages or modules)


def _texts(value: object) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else text_list(value)
