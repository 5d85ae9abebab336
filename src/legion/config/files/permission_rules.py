"""rules.toml next to the person's settings: permissions that they granted for always.

`legion answer ID always` writes it, after it has shown the rule; a person may too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from legion.config.base import settings
from legion.config.base.settings import texts
from legion.config.base.source import HIDDEN, read
from legion.domain.errors import BadInput, NotAllowed
from legion.system import files
from legion.system.paths import user_config_file

FILE = "rules.toml"
_HEADER = """\
# What Claude Code uses without asking, besides `claude.allow` in config.toml.
# `legion answer ID always` rewrites this file: your comments do not stay.
"""


def _fault(rule: str) -> str | None:
    return None if rule.strip() and not HIDDEN.search(rule) and "\n" not in rule else "is no rule"


@dataclass(frozen=True, kw_only=True)
class Rules:
    allow: tuple[str, ...] = texts(
        allowed="Tools that are used without asking.", fault=_fault, help="Tools that are used without asking."
    )


def rules_file() -> Path:
    return user_config_file().with_name(FILE)


def load(path: Path | None = None) -> tuple[str, ...]:
    """In the order of the file; none where there is no file. Raises BadInput for the first fault."""
    path = path or rules_file()
    try:
        content = path.read_text("utf-8")
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as fault:
        raise BadInput(f"{path} cannot be read ({fault}): fix or remove it.") from None
    return settings.read_section(Rules, read(content, str(path)), []).allow


def add(rule: str, path: Path | None = None) -> None:
    """Add a rule. The same rule again changes nothing. Raises BadInput or NotAllowed, and then changes nothing."""
    path = path or rules_file()
    if _fault(rule):
        raise BadInput("This rule cannot be stored: allow it once with yes.")
    known = load(path)
    if rule in known:
        return
    # A JSON string is a TOML string too, as long as no letter is escaped.
    lines = "".join(f"    {json.dumps(one, ensure_ascii=False)},\n" for one in (*known, rule))
    content = f"{_HEADER}\nallow = [\n{lines}]\n"
    settings.read_section(Rules, read(content, FILE), [])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomic(path, content)
    except OSError as fault:
        raise NotAllowed(f"{path} cannot be written ({fault.strerror}): make its folder writable.") from fault
