"""The status line in a settings file of Claude Code: added where there is none, and taken out again. Pure."""

from __future__ import annotations

import json

KEY = "statusLine"


def with_line(text: str | None, command: str) -> tuple[str | None, str]:
    """The settings with our status line, or None and the reason why they stay as they are. None: there is no file."""
    settings = _settings(text)
    if settings is None:
        return None, "it is no JSON object"
    if KEY in settings:
        ours = is_ours(text, command)
        return None, "" if ours else "you have a status line of your own, which stays"
    settings[KEY] = {"type": "command", "command": command}
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n", ""


def without_line(text: str, command: str) -> str | None:
    """The settings without our status line; None where it is not in them."""
    settings = _settings(text)
    if settings is None or not is_ours(text, command):
        return None
    del settings[KEY]
    return json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def is_ours(text: str | None, command: str) -> bool:
    line = (_settings(text) or {}).get(KEY)
    return isinstance(line, dict) and line.get("command") == command


def _settings(text: str | None) -> dict[str, object] | None:
    try:
        found = json.loads(text) if text is not None and text.strip() else {}
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
