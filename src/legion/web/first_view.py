"""Joins the modules of the page's first view into one file: a browser loads it in one request instead of thirteen.

The modules stay as they are on disk. Each becomes a function of its own here, in the order of their imports. A view
that is loaded later imports the same modules by their own addresses, and gets the joined ones.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

ENTRY = "app/main.js"
JOINED = "app/first.js"
FOLDER = "/web/"

_IMPORT = re.compile(r'(?:^|(?<=;))import\s*(\w+|\{[^}]*\})\s*from\s*"([^"]+)";?', re.MULTILINE)
_PASSED_ON = re.compile(r'(?:^|(?<=[;}]))export\s*\{([^}]*)\}\s*from\s*"([^"]+)";?', re.MULTILINE)
_LISTED = re.compile(r"(?:^|(?<=[;}]))export\s*\{([^}]*)\};?", re.MULTILINE)
_DECLARED = re.compile(r"^export ((?:async )?function\*?|class|const) (\w+)", re.MULTILINE)
_DEFAULT = re.compile(r"(?:^|(?<=[;}]))export default ", re.MULTILINE)
_LATER = re.compile(r'\bimport\("([^"]+)"\)')


@dataclass(kw_only=True)
class _Module:
    name: str
    body: str
    exports: dict[str, str] = field(default_factory=dict)
    """What it exports: the name outside to an expression inside."""


class FirstView:
    """The joined file, and for each module in it a file that exports the same names."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._modules: dict[str, _Module] = {}
        self._read(ENTRY)
        self.names = frozenset(self._modules)

    def file(self, name: str) -> str:
        """The text of JOINED, or of a module that is in it."""
        return self._joined() if name == JOINED else self._stand_in(self._modules[name])

    def _joined(self) -> str:
        parts = ["const modules = {};"]
        for name, module in self._modules.items():
            given = ", ".join(f"{outside}: {inside}" for outside, inside in module.exports.items())
            parts.append(f'modules["{name}"] = (() => {{\n{module.body}\nreturn {{ {given} }};\n}})();')
        return "\n".join([*parts, "export { modules };", ""])

    def _stand_in(self, module: _Module) -> str:
        lines = [f'import {{ modules }} from "{FOLDER}{JOINED}";', f'const module = modules["{module.name}"];']
        named = [name for name in module.exports if name != "default"]
        if named:
            lines.append(f"export const {{ {', '.join(named)} }} = module;")
        if "default" in module.exports:
            lines.append("export default module.default;")
        return "\n".join([*lines, ""])

    def _read(self, name: str) -> None:
        """Adds the module behind those that it imports."""
        text = (self._root / name).read_text(encoding="utf-8")
        for found in (*_IMPORT.finditer(text), *_PASSED_ON.finditer(text)):
            needed = _resolved(name, found[2])
            if needed not in self._modules:
                self._read(needed)
        module = _Module(name=name, body="")
        text = _PASSED_ON.sub(lambda found: self._pass_on(module, _resolved(name, found[2]), found[1]), text)
        text = _IMPORT.sub(lambda found: _taken(_resolved(name, found[2]), found[1]), text)
        text = _LISTED.sub(lambda found: _listed(module, found[1]), text)
        text = _DECLARED.sub(lambda found: _declared(module, found), text)
        text = _DEFAULT.sub(lambda _: _default(module), text)
        module.body = _LATER.sub(lambda found: f'import("{FOLDER}{_resolved(name, found[1])}")', text)
        self._modules[name] = module

    def _pass_on(self, module: _Module, source: str, names: str) -> str:
        for inside, outside in _pairs(names):
            module.exports[outside] = f'modules["{source}"].{inside}'
        return ""


def _resolved(importer: str, address: str) -> str:
    """The name of the file behind a relative address."""
    parts: list[str] = []
    for part in (PurePosixPath(importer).parent / address).parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def _pairs(names: str) -> list[tuple[str, str]]:
    """`a as b, c`: each name inside with its name outside."""
    found = [one.split() for one in names.split(",") if one.strip()]
    return [(one[0], one[-1]) for one in found]


def _taken(source: str, names: str) -> str:
    if not names.startswith("{"):
        return f'const {names} = modules["{source}"].default;'
    given = ", ".join(f"{outside}: {inside}" for outside, inside in _pairs(names.strip("{}")))
    return f'const {{ {given} }} = modules["{source}"];'


def _listed(module: _Module, names: str) -> str:
    module.exports.update({outside: inside for inside, outside in _pairs(names)})
    return ""


def _declared(module: _Module, found: re.Match[str]) -> str:
    module.exports[found[2]] = found[2]
    return f"{found[1]} {found[2]}"


def _default(module: _Module) -> str:
    module.exports["default"] = "standard"
    return "const standard = "
