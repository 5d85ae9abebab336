"""Who may import what, beyond the layers that import-linter holds."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

from tests.support.codebase import ROOT, SOURCE, imported_modules, place, python_files, text_of

# Nothing here reads a clock, draws at random or touches the outside.
DOMAIN_MAY_IMPORT = {
    "__future__", "ast", "bisect", "collections", "dataclasses", "datetime", "difflib", "enum", "fnmatch", "functools",
    "graphlib", "heapq", "ipaddress", "itertools", "json", "math", "operator", "re", "shlex", "statistics", "tomllib",
    "types", "typing", "unicodedata",
}  # fmt: skip


def project() -> dict[str, list[str]]:
    found: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def distribution(requirement: str) -> str:
    match = re.match(r"[A-Za-z0-9_.-]+", requirement)
    assert match is not None
    return match[0]


# Distributions whose module has another name.
MODULES = {"agent-client-protocol": "acp", "pyyaml": "yaml"}


def module(distribution: str) -> str:
    """A distribution may be called with dashes; its module is not."""
    return MODULES.get(distribution, distribution.replace("-", "_"))


def test_the_domain_imports_only_what_cannot_touch_the_world():
    found = [
        f"{place(path)} imports {module}"
        for path in python_files("src")
        if path.is_relative_to(SOURCE / "domain")
        for module in sorted(imported_modules(path))
        if module.split(".")[0] != "legion" and module.split(".")[0] not in DOMAIN_MAY_IMPORT
    ]
    assert not found, found


def test_the_domain_uses_datetime_for_calendars_and_never_as_a_clock():
    asks = re.compile(r"\b(?:now|today|utcnow)\(")
    domain = [path for path in python_files("src") if path.is_relative_to(SOURCE / "domain")]
    assert [place(path) for path in domain if asks.search(text_of(path))] == []


def test_every_library_that_the_code_imports_is_declared_and_every_declared_one_is_imported():
    imported = {name.split(".")[0] for path in python_files("src") for name in imported_modules(path)}
    # Starlette and pydantic come with FastAPI and have no life apart from it; acp's models are pydantic's.
    # Type checkers bring _typeshed.
    ours = {"legion", "starlette", "pydantic", "_typeshed"}
    foreign = imported - ours - set(sys.stdlib_module_names)
    core = {module(distribution(requirement)) for requirement in project()["dependencies"]}
    optional = {"psycopg", "procrastinate"}
    # Uvicorn imports it when a client asks for a WebSocket.
    indirect = {"websockets"}
    assert foreign <= core | optional, f"declare these in pyproject.toml: {sorted(foreign - core - optional)}"
    unused = core - foreign - indirect
    assert not unused, f"nothing imports these, take them out of pyproject.toml: {sorted(unused)}"


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_every_declared_library_is_locked_with_hashes(lock):
    text = (ROOT / lock).read_text()
    for requirement in project()["dependencies"]:
        assert re.search(
            rf"^{distribution(requirement)}(?:\[\w+\])?==\S+ .*\\\n    --hash=sha256:", text, re.MULTILINE
        ), requirement


def test_both_locks_hold_the_same_versions():
    def pins(lock: str) -> set[str]:
        return set(re.findall(r"^[a-z0-9-]+(?:\[\w+\])?==\S+", (ROOT / lock).read_text(), re.MULTILINE))

    assert pins("requirements.lock") <= pins("requirements-dev.lock"), "run `make lock`"


@pytest.mark.parametrize("room", ["cli", "client", "wire", "domain", "system"])
def test_a_light_room_loads_none_of_the_big_libraries(room):
    modules = [
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in python_files("src")
        if path.is_relative_to(SOURCE / room) and path.name != "__main__.py"
    ]
    code = (
        f"import sys, {', '.join(modules)}; print(*sorted({{'fastapi', 'pydantic', 'sqlalchemy'}} & set(sys.modules)))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(SOURCE.parent)}, check=True, capture_output=True, text=True
    )
    assert loaded.stdout.split() == []
