"""Templates of plans: shipped, the person's own over them, and a repository's trusted ones over both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from legion.config.files.teams import DefinitionKind, Definitions, DefinitionSource
from legion.domain.errors import BadInput
from legion.domain.plans.template import Template, read, resolve


@dataclass(frozen=True, kw_only=True)
class Templates:
    """All templates by name. A broken file is an error; the one that it would replace is never used instead."""

    sources: Mapping[str, DefinitionSource]
    parsed: Mapping[str, Template]
    faults: Mapping[str, str]

    def get(self, name: str) -> Template:
        """With everything that it extends. Raises BadInput for an unknown or broken one."""
        for wanted in (name, *self._below(name)):
            if wanted in self.faults:
                raise BadInput(self.faults[wanted])
        return resolve(name, self.parsed)

    def _below(self, name: str) -> list[str]:
        found: list[str] = []
        while name in self.parsed and (name := self.parsed[name].extends) and name not in found:
            found.append(name)
        return found


def templates(definitions: Definitions) -> Templates:
    sources = {name: one for (kind, name), one in definitions.texts.items() if kind is DefinitionKind.TEMPLATE}
    faults = {name: why for (kind, name), why in definitions.faults.items() if kind is DefinitionKind.TEMPLATE}
    parsed: dict[str, Template] = {}
    for name, one in sources.items():
        try:
            parsed[name] = read(name, one.text, one.file)
        except BadInput as wrong:
            faults[name] = wrong.message
    return Templates(sources=sources, parsed=parsed, faults=faults)
