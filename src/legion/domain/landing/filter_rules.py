"""Which files git stores through a filter (LFS, git-crypt, ...), by the rules in attribute files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_MACRO = "[attr]"
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_SPECIAL = re.compile(r"([\\*?\[])")


@dataclass(frozen=True)
class FilterRule:
    """Files that match `pattern`, which counts from the top, go through the filter `name`; through none if empty."""

    pattern: str
    name: str

    @property
    def line(self) -> str:
        """As a line of an attribute file at the top."""
        quoted = re.sub(r'(["\\])', r"\\\1", self.pattern).replace("\n", "\\n")
        return f'"{quoted}" {f"filter={self.name}" if self.name else "-filter"}\n'


def filter_rules(files: Mapping[str, str]) -> tuple[FilterRule, ...]:
    """The rules in attribute files, by path: the last rule that matches a file counts."""
    macros: dict[str, str] = {}
    found = []
    for path, text in sorted(files.items(), key=lambda file: (file[0].count("/"), file[0])):
        folder = path.rpartition("/")[0]
        for line in text.splitlines():
            pattern, words = _split(line.strip(" \t\r"))
            name = _filter(words, macros)
            if pattern.startswith(_MACRO) and not folder and name is not None:
                macros[pattern.removeprefix(_MACRO)] = name
            elif pattern and name is not None:
                found.append(FilterRule(_from_top(folder, pattern), name))
    return tuple(found)


def filter_names(rules: Iterable[FilterRule]) -> tuple[str, ...]:
    return tuple(sorted({rule.name for rule in rules if rule.name}))


def filter_changes(
    before: Iterable[FilterRule], after: Iterable[FilterRule], defined: Iterable[str]
) -> tuple[str, ...]:
    """What a change of the rules means, a sentence for each; `defined` are the filters that git can run here."""
    old, new = dict.fromkeys(before), dict.fromkeys(after)
    gone = [f"{rule.pattern} leaves the filter {rule.name}: {_LEFT}" for rule in old if rule.name and rule not in new]
    runs, unknown = {*defined}, "your git settings do not define it, so these files are stored as they are"
    come = [
        f"{rule.pattern} goes through the filter {rule.name}: {_ENTERED if rule.name in runs else unknown}"
        for rule in new
        if rule.name and rule not in old
    ]
    freed = [f"{rule.pattern} is taken out of filters: {_LEFT}" for rule in new if not rule.name and rule not in old]
    return (*gone, *freed, *come)


def filter_sentence(name: str, *, defined: bool) -> str:
    """What a filter that is in force means for the project."""
    if defined:
        return (
            f"Files go through the git filter {name}: it runs in a sandbox for worktrees and checks, and by your own "
            "git at collect; the hub keeps the stored form."
        )
    remedy = _REMEDIES.get(name, f"set filter.{name}.clean and filter.{name}.smudge with `git config`")
    return (
        f"Files go through the git filter {name}, which your git settings do not define: agents see the stored form, "
        f"and no change of such a file is saved; {remedy}."
    )


_REMEDIES = {"lfs": "run `git lfs install`", "git-crypt": "run `git-crypt unlock` in your checkout"}
_LEFT = (
    "from then on such files are stored as they are, secrets included; those of this change still went through it, so "
    "say no and convert the files yourself if you want that"
)
_ENTERED = "git stores what the filter's program makes of such files, and every clone needs that program"


def _split(line: str) -> tuple[str, list[str]]:
    """The pattern and the attributes; an empty pattern for a line that has none."""
    if not line or line.startswith("#"):
        return "", []
    if (quoted := _QUOTED.match(line)) is not None:
        pattern = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), quoted[1])
        return pattern, line[quoted.end() :].split()
    pattern, *words = line.split()
    return pattern, words


def _filter(words: Iterable[str], macros: Mapping[str, str]) -> str | None:
    """The filter that the attributes of one line choose; empty for none, None where they say nothing about it."""
    found: str | None = None
    for word in words:
        if word in macros:
            found = macros[word]
        elif word in ("filter", "-filter", "!filter"):
            found = ""
        elif word.startswith("filter="):
            found = word.removeprefix("filter=")
    return found


def _from_top(folder: str, pattern: str) -> str:
    if not folder:
        return pattern
    place = _SPECIAL.sub(r"\\\1", folder)
    return f"/{place}/{pattern.lstrip('/')}" if "/" in pattern.rstrip("/") else f"/{place}/**/{pattern}"
