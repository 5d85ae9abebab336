"""routes.toml next to the person's settings: which models are requested elsewhere than at the provider of a run.

`legion provider route` writes it; a person may too.
"""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import dataclass
from pathlib import Path

from legion.config.base.source import HIDDEN
from legion.domain.errors import BadInput, NotAllowed
from legion.system import files
from legion.system.paths import user_config_file

FILE = "routes.toml"
_HEADER = """\
# Which models are asked elsewhere; the first table whose `model` fits counts, and `*` stands for any letters.
# `legion provider route` rewrites this file: your comments do not stay.
"""
_LABELS = ("provider", "agent", "role", "team")
_KEYS = {"model", "to", "most_usd", *_LABELS}


@dataclass(frozen=True, kw_only=True)
class RouteTarget:
    provider: str
    model: str = ""
    """Empty: the requested one."""

    @property
    def spelled(self) -> str:
        return f"{self.provider}/{self.model}" if self.model else self.provider


@dataclass(frozen=True, kw_only=True)
class RouteConfig:
    model: str
    to: tuple[RouteTarget, ...]
    provider: str = ""
    """Only for runs with this provider; empty: for all."""
    agent: str = ""
    role: str = ""
    team: str = ""
    """Only for runs with such a label, `*` for any letters; empty: for all."""
    most_usd: float | None = None
    """Targets whose model costs more for a million output tokens are skipped."""

    @property
    def about(self) -> tuple[str, ...]:
        """What it applies to: only one route may have the same."""
        return (self.model, self.provider, self.agent, self.role, self.team)


def target(words: str) -> RouteTarget:
    """`PROVIDER` or `PROVIDER/MODEL`; a model may have more slashes in its name."""
    provider, _, model = words.partition("/")
    if not provider or (not model and "/" in words):
        raise BadInput(f"{words!r} is no target: write PROVIDER or PROVIDER/MODEL.")
    return RouteTarget(provider=provider, model=model)


def routes_file() -> Path:
    return user_config_file().with_name(FILE)


def load(path: Path | None = None) -> tuple[RouteConfig, ...]:
    """In the order of the file; none where there is no file. Raises BadInput for the first fault."""
    path = path or routes_file()
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as fault:
        raise BadInput(f"{path} cannot be read ({fault}): fix or remove it.") from None
    tables = document.get("route", [])
    if set(document) - {"route"} or not isinstance(tables, list):
        raise BadInput(f"{path} may have nothing but [[route]] tables: fix or remove it.")
    return tuple(_route(one, path) for one in tables)


def save(routes: tuple[RouteConfig, ...], path: Path | None = None) -> None:
    """Raises NotAllowed where the file cannot be written."""
    path = path or routes_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomic(path, _HEADER + "".join(_table(one) for one in routes))
    except OSError as fault:
        raise NotAllowed(f"{path} cannot be written ({fault.strerror}): make its folder writable.") from fault


def _route(table: object, path: Path) -> RouteConfig:
    if not isinstance(table, dict) or set(table) - _KEYS or not _fits(table):
        raise BadInput(f'A [[route]] of {path} must look like model = "claude-haiku-*", to = ["ollama/qwen3"]: fix it.')
    most = table.get("most_usd")
    return RouteConfig(
        model=table["model"],
        to=tuple(target(one) for one in table["to"]),
        most_usd=None if most is None else float(most),
        **{label: table.get(label, "") for label in _LABELS},
    )


def _fits(table: dict[str, object]) -> bool:
    to = table.get("to")
    named = isinstance(to, list) and bool(to) and all(_plain(one) for one in to)
    labels = [table[label] for label in _LABELS if label in table]
    return named and all(_plain(one) for one in (table.get("model"), *labels)) and _price(table.get("most_usd"))


def _price(value: object) -> bool:
    if value is None or isinstance(value, bool):
        return value is None
    return isinstance(value, int | float) and 0 <= float(value) < math.inf


def _plain(value: object) -> bool:
    return isinstance(value, str) and bool(value) and not HIDDEN.search(value)


def _table(one: RouteConfig) -> str:
    said = {
        "model": one.model,
        **{label: getattr(one, label) or None for label in _LABELS},
        "to": [target.spelled for target in one.to],
        "most_usd": one.most_usd,
    }
    # A JSON string is a TOML string too, as long as no letter is escaped.
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in said.items() if value is not None]
    return "\n[[route]]\n" + "".join(lines)
