"""Rules for git filters (LFS, git-crypt, ...): which ones run, and the words for a change of their rules.

Which filter a file goes through is git's own answer.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_NAMED = re.compile(r"(?<!\S)filter=(\S+)")
_MACRO = re.compile(r"\[attr\](\S+)")
_SHOWN = 5


def filter_names(texts: Iterable[str]) -> tuple[str, ...]:
    """Every filter that attribute files with these texts name."""
    return tuple(sorted({name for text in texts for line in _lines(text) for name in _NAMED.findall(line)}))


def filter_lines(texts: Iterable[str]) -> tuple[str, ...]:
    """The lines of attribute files that may choose a filter: those that name one, or a macro."""
    lines = [line for text in texts for line in _lines(text)]
    words = {"filter", "-filter", "!filter", *(name for line in lines for name in _MACRO.findall(line))}
    return tuple(line for line in lines if "filter=" in line or words & {*line.split()[1:]})


def _lines(text: str) -> list[str]:
    found = (line.strip() for line in text.removeprefix("\ufeff").split("\n"))
    return [line for line in found if line and not line.startswith("#")]


def filter_changes(
    before: Mapping[str, str],
    after: Mapping[str, str],
    lines: tuple[Sequence[str], Sequence[str]],
    defined: Iterable[str],
) -> tuple[str, ...]:
    """What a change means for the filters of files, a sentence for each move; `lines` are the rules before and after.

    `defined` are the filters that git can run here.
    """
    moves: dict[tuple[str, str], list[str]] = {}
    for path in sorted({*before, *after}):
        was, now = before.get(path, ""), after.get(path, "")
        if was != now:
            moves.setdefault((was, now), []).append(path)
    runs, unknown = {*defined}, "your git settings do not define it, so no change of these files is saved"
    said = []
    for (old, new), paths in moves.items():
        names = ", ".join(paths[:_SHOWN]) + (f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else "")
        if old and not new:
            said.append(f"{names}: leaves the filter {old}: {_LEFT}")
        else:
            come = f"changes from the filter {old} to {new}" if old else f"goes through the filter {new}"
            said.append(f"{names}: {come}: {_ENTERED if new in runs else unknown}")
    gone, new_lines = ([line for line in one if line not in other] for one, other in (lines, lines[::-1]))
    changed = [*(f"`{line}` is gone" for line in gone), *(f"`{line}` is new" for line in new_lines)]
    if changed or lines[0] != lines[1]:
        what = "; ".join(changed) or "they stand in another order, and the last one that matches a file counts"
        said.append(f"the rules for filters change ({what}): a file that leaves its filter is {_PLAIN}")
    return tuple(said)


def late_filter(path: str, name: str) -> str:
    return (
        f"{path}: goes through the filter {name} on the target by now, and this change was stored before that, so it "
        "would land as it is, secrets included; a no starts it again from the target"
    )


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


def program_names(name: str, commands: Iterable[str]) -> frozenset[str]:
    """The sections of git's settings that a filter with these commands may read: its own, and those of its programs."""
    called = {call[0].rpartition("/")[2] for command in commands for call in _calls(command) or () if call}
    return frozenset(one for one in {name, *called} if re.fullmatch(r"[A-Za-z][\w-]*", one)) - _SECTIONS_OF_GIT


def _runs_code_of_the_tree(command: str) -> bool:
    """As far as the words of a command tell: a relative path, a runner of the project's packages, a module of Python
    that may be found in the current folder. The sandbox holds whatever else there is.
    """
    calls = _calls(command)
    return calls is None or any(_is_of_the_tree(*call) for call in calls if call)


def _calls(command: str) -> list[list[str]] | None:
    """The programs that a command starts, each with its arguments; None where its quotes do not match."""
    reader = shlex.shlex(command, posix=True, punctuation_chars=True)
    reader.whitespace_split, reader.commenters = True, ""
    try:
        words = [*reader]
    except ValueError:
        return None
    calls: list[list[str]] = [[]]
    for word in words:
        if word and not word.strip(reader.punctuation_chars):
            calls.append([])
        elif calls[-1] or not _ASSIGNMENT.match(word):
            calls[-1].append(word)
    return calls


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


_SECTIONS_OF_GIT = frozenset(
    ("core", "user", "http", "credential", "url", "remote", "filter", "git", "include", "alias")
)
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
_PLAIN = "stored as it is, secrets included"
_LEFT = (
    "from then on such files are stored as they are, secrets included; those of this change still went through it, so "
    "say no and convert the files yourself if you want that"
)
_ENTERED = "git stores what the filter's program makes of such files, and every clone needs that program"
