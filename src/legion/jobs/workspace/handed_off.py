"""A ticket's conversation in the person's own folder of the program: copied there by a handoff, and taken back.

The next run of the ticket takes what was written there if it continues exactly what the ticket has. So what the person
discussed in the terminal is part of the ticket's conversation, whatever resumes the ticket.
"""

from __future__ import annotations

import logging
from pathlib import Path

from legion.domain.errors import StateConflict
from legion.drivers.profile import DriverProfile
from legion.system import files, safe_files

log = logging.getLogger(__name__)


def give(driver: DriverProfile, transcript: Path, conversation: str, tree: Path) -> Path:
    """Copy it to where the person's program looks for it; never over what they added there. Raises StateConflict."""
    copy = _copy(driver, conversation, tree)
    content = _read(transcript)
    if copy.exists():
        there = copy.read_bytes()
        if there.startswith(content):
            return copy
        if not content.startswith(there):
            raise StateConflict(f"{copy} was continued in a terminal, and so was the ticket: move it away.")
    copy.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    files.write_atomic(copy, content)
    return copy


def take_back(driver: DriverProfile, state: Path, conversation: str, tree: Path) -> bool:
    """Put what the person added into the agent's state folder. Repeated, nothing is left to take."""
    if not driver.capabilities.rewinds or driver.login_file() is None:
        return False
    copy = _copy(driver, conversation, tree)
    own = driver.transcript(state, conversation)
    try:
        if own is None or copy.stat().st_size <= own.stat().st_size or not _continues(copy, own):
            return False
    except (OSError, StateConflict):
        return False
    driver.take_transcript(copy, conversation, state, tree)
    log.info("conversation %s continues with what was written in a terminal", conversation)
    return True


def _continues(copy: Path, own: Path) -> bool:
    """It has complete lines only, and starts with all that the ticket has."""
    there = copy.read_bytes()
    return there.endswith(b"\n") and there.startswith(_read(own))


def _read(transcript: Path) -> bytes:
    """It is where its agent can write, two folders below the agent's own. No link is followed on the way."""
    top = transcript.parents[2]
    content = safe_files.read(top, str(transcript.relative_to(top)))
    if content is None:
        raise StateConflict(f"{transcript} is no longer a file: start a new run with `legion retry`.")
    return content


def _copy(driver: DriverProfile, conversation: str, tree: Path) -> Path:
    login = driver.login_file()
    assert login is not None, "a driver that rewinds has a login"
    name = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in str(tree))
    return login.parent / "projects" / name / f"{conversation}.jsonl"
