"""Keeps the tables of docs/configuration.md up to date: `python -m legion.config.document FILE` rewrites them."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from legion.config.base import settings
from legion.config.files import project, user
from legion.domain.review.protected_files import PROTECTED

_BLOCK = re.compile(r"(<!-- settings: (?P<file>\w+) (?P<section>[\w.]+) -->\n).*?(<!-- end -->)", re.DOTALL)

FILES: Mapping[str, Mapping[str, type]] = {"project": project.SECTIONS, "user": user.SECTIONS}


def blocks() -> list[str]:
    """Every block that the page must have, as "file section"."""
    return [*(f"{file} {section or 'top'}" for file in FILES for section in FILES[file]), "project always_protected"]


def refresh(page: str) -> str:
    """The page with every table as the code has it."""
    return _BLOCK.sub(lambda found: found[1] + _block(found["file"], found["section"]) + found[4], page)


def _block(file: str, section: str) -> str:
    if section == "always_protected":
        return "```\n" + "\n".join(PROTECTED) + "\n```\n"
    return _table(FILES[file]["" if section == "top" else section])


def _table(section: type) -> str:
    lines = ["| key | default | allowed | meaning |", "|---|---|---|---|"]
    needed = settings.required(section)
    defaults = {field.name: field.default for field in dataclasses.fields(section)}
    for name, rule in settings.rules(section).items():
        default = "needed" if name in needed else _default(rule.show(defaults[name]))
        lines.append(f"| `{name}` | {default} | {rule.allowed} | {rule.help} |")
    return "\n".join(lines) + "\n"


def _default(value: object) -> str:
    if isinstance(value, list):
        listed = ", ".join(f'"{one}"' for one in value)
        return f"`[{listed}]`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(refresh(page.read_text()))
