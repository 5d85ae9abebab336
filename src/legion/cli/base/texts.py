"""Reads texts from arguments, stdin and files, and refuses what is not valid Unicode or holds a NUL."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from legion.wire.errors import BadInput, NotFound

MOST_BYTES = 16 * 1024 * 1024
TITLE_LETTERS = 40


def read_text(word: str, name: str) -> str:
    """The argument itself, or all of stdin for a dash."""
    return valid_text(read_stdin(name) if word == "-" else word, name)


def read_stdin(name: str) -> str:
    return decode(sys.stdin.buffer.read(MOST_BYTES + 1), name)


def file_text(file: str, *, kind: str = "file", name: str = "The text") -> str:
    """The text of the file that --from names; a dash is stdin. A refusal names the kind of file, or the text."""
    if file == "-":
        return read_text("-", name)
    try:
        with open(file, "rb") as opened:  # noqa: PTH123  # importing pathlib takes longer than a plain dispatch
            return valid_text(decode(opened.read(MOST_BYTES + 1), file), file)
    except FileNotFoundError:
        raise NotFound(f"There is no file {file}; pass an existing {kind} to --from.") from None
    except IsADirectoryError:
        raise BadInput(f"{file} is a folder; pass a {kind} inside it to --from.") from None


def decode(content: bytes, name: str) -> str:
    if len(content) > MOST_BYTES:
        raise BadInput(f"{name} is larger than {MOST_BYTES // 2**20} MB; put long texts into the repository.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{name} is not UTF-8 (byte {error.start}); convert it first.") from None


def valid_text(text: str, name: str) -> str:
    if "\0" in text:
        raise BadInput(f"{name} holds a NUL character; remove it.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadInput(f"{name} is not valid UTF-8; convert it first.") from None
    return text


def short_title(text: str) -> str:
    """A title made of the first letters of a text."""
    line = " ".join(text[:1000].split())
    if not line:
        raise BadInput("The text is empty and there is no title; say what you want.")
    return line if len(line) <= TITLE_LETTERS else line[:TITLE_LETTERS].rstrip() + "…"


def named_values(options: Iterable[str]) -> dict[str, str]:
    """The variables of a template, as --var NAME=VALUE gives them."""
    given: dict[str, str] = {}
    for one in options:
        name, equals, value = valid_text(one, "--var").partition("=")
        if not equals or not name.strip():
            raise BadInput(f"{one[:40]!r} is no value; write --var NAME=VALUE.")
        given[name.strip()] = value
    return given
