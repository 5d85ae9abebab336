"""Which files git stores through a filter (LFS, git-crypt, ...), by the rules in attribute files."""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_MACRO = "[attr]"
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(rb"\\([0-3][0-7]{2}|.)", re.DOTALL)
_ESCAPES = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_OCTAL = 3
_BLANKS = " \t\r"
_MOST_STEPS = 20
"""Macros in macros."""
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


def filter_rules(files: Mapping[str, str], *, first: Iterable[str] = (), last: str = "") -> tuple[FilterRule, ...]:
    """The rules in attribute files, by path: the last rule that matches a file counts.

    `first` and `last` are the texts of the person's own files, which go before and after those. A macro holds wherever
    it is defined, also for lines above it.
    """
    inner = sorted(files.items(), key=lambda file: (file[0].count("/"), file[0]))
    texts = [*(("", text) for text in first), *((path.rpartition("/")[0], text) for path, text in inner), ("", last)]
    lines = [
        (folder, *_split(line.strip(_BLANKS)))
        for folder, text in texts
        for line in text.removeprefix("\ufeff").split("\n")
    ]
    macros = {
        pattern.removeprefix(_MACRO): words
        for folder, pattern, words in lines
        if pattern.startswith(_MACRO) and not folder
    }
    named = ((folder, pattern, _filter(words, macros)) for folder, pattern, words in lines)
    return tuple(
        FilterRule(_from_top(folder, pattern), name)
        for folder, pattern, name in named
        if pattern and name is not None and not pattern.startswith(_MACRO)
    )


def filter_names(rules: Iterable[FilterRule]) -> tuple[str, ...]:
    return tuple(sorted({rule.name for rule in rules if rule.name}))


def filter_changes(
    before: Iterable[FilterRule], after: Iterable[FilterRule], defined: Iterable[str]
) -> tuple[str, ...]:
    """What a change of the rules means, a sentence for each; `defined` are the filters that git can run here."""
    # Where a rule stands twice, the last place counts.
    old, new = (tuple(dict.fromkeys(reversed([*rules])))[::-1] for rules in (before, after))
    gone = [f"{rule.pattern} leaves the filter {rule.name}: {_LEFT}" for rule in old if rule.name and rule not in new]
    runs, unknown = {*defined}, "your git settings do not define it, so no change of these files is saved"
    come = [
        f"{rule.pattern} goes through the filter {rule.name}: {_ENTERED if rule.name in runs else unknown}"
        for rule in new
        if rule.name and rule not in old
    ]
    freed = [f"{rule.pattern} is taken out of filters: {_LEFT}" for rule in new if not rule.name and rule not in old]
    moved = [rule for rule in old if rule in new] != [rule for rule in new if rule in old]
    order = "the rules for filters stand in another order: the last one that matches a file counts, so a file may leave"
    return (*gone, *freed, *come, *((f"{order} its filter and be stored as it is, secrets included",) if moved else ()))


@dataclass(frozen=True)
class FilterRefusal:
    """Why a filter does not run, and what would change that."""

    why: str
    remedy: str


def refusal(name: str, parts: Mapping[str, str] | None) -> FilterRefusal | None:
    """Of a filter with these settings; None where it runs."""
    if not parts:
        remedy = _REMEDIES.get(name, f"set filter.{name}.clean and filter.{name}.smudge with `git config`")
        return FilterRefusal("which your git settings do not define", remedy)
    if not (parts.get("clean") or parts.get("process")):
        why = "for which your git settings have no clean command"
        return FilterRefusal(why, f"set filter.{name}.clean with `git config`")
    for part in ("clean", "smudge", "process"):
        if _runs_code_of_the_tree(parts.get(part, "")):
            return FilterRefusal(
                f"whose command `{parts[part]}` can take its program from the worktree, where an agent writes",
                f"name an installed program in filter.{name}.{part}, by its full path or as a command that is on the "
                "PATH (a Python module: `python3 -P -m NAME`)",
            )
    return None


def _runs_code_of_the_tree(command: str) -> bool:
    """As far as the words of a command tell: a relative path, a runner of the project's packages, a module of Python
    that may be found in the current folder. The sandbox holds whatever else there is.
    """
    reader = shlex.shlex(command, posix=True, punctuation_chars=True)
    reader.whitespace_split, reader.commenters = True, ""
    try:
        words = [*reader]
    except ValueError:
        return True
    calls: list[list[str]] = [[]]
    for word in words:
        if word and not word.strip(reader.punctuation_chars):
            calls.append([])
        elif calls[-1] or not _ASSIGNMENT.match(word):
            calls[-1].append(word)
    return any(_is_of_the_tree(*call) for call in calls if call)


def _is_of_the_tree(program: str, *arguments: str) -> bool:
    name = program.rpartition("/")[2]
    if ("/" in program and program[0] not in "/~$") or any(word.startswith(("./", "../")) for word in arguments):
        return True
    if name in _PROJECT_RUNNERS or _INTERPRETER.fullmatch(name) is None:
        return name in _PROJECT_RUNNERS
    flags = [*itertools.takewhile(lambda word: word.startswith("-"), arguments)]
    if any(_INLINE.fullmatch(flag) for flag in flags):
        return False
    if any(flag.endswith("m") for flag in flags):
        return not any(_SAFE.fullmatch(flag) for flag in flags)
    script = arguments[len(flags) :][:1]
    return bool(script) and script[0][0:1] not in ("/", "~", "$")


_ASSIGNMENT = re.compile(r"\w+=")
_PROJECT_RUNNERS = {"npx", "npm", "pnpm", "yarn", "bun", "bunx", "uv", "poetry", "pipenv", "bundle", "make", "just"}
_INTERPRETER = re.compile(r"(?:python|pypy|ruby|perl|node|deno|php|lua|sh|bash|dash|zsh|ksh)[\d.]*")
_INLINE = re.compile(r"-[A-Za-z]*[ceE]")
_SAFE = re.compile(r"-[A-Za-z]*[IP][A-Za-z]*")


def filter_sentence(name: str, refused: FilterRefusal | None) -> str:
    """What a filter that is in force means for the project."""
    if refused is None:
        return (
            f"Files go through the git filter {name}: it runs in a sandbox for worktrees and checks, and by your own "
            "git at collect; the hub keeps the stored form."
        )
    return (
        f"Files go through the git filter {name}, {refused.why}: agents see the stored form, and no change of such a "
        f"file is saved; {refused.remedy}."
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
        raw = _ESCAPED.sub(_unescaped, quoted[1].encode("utf-8", "surrogateescape"))
        return raw.decode("utf-8", "surrogateescape"), re.split(f"[{_BLANKS}]+", line[quoted.end() :])
    pattern, *words = re.split(f"[{_BLANKS}]+", line)
    return pattern, words


def _unescaped(found: re.Match[bytes]) -> bytes:
    return bytes([int(found[1], 8)]) if len(found[1]) == _OCTAL else _ESCAPES.get(found[1], found[1])


def _filter(words: Iterable[str], macros: Mapping[str, Sequence[str]], steps: int = 0) -> str | None:
    """The filter that the attributes of one line choose; empty for none, None where they say nothing about it."""
    found: str | None = None
    for word in words:
        if word in macros and steps < _MOST_STEPS:
            inner = _filter(macros[word], macros, steps + 1)
            found = found if inner is None else inner
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
