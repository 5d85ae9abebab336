"""A person's settings for tests: as they are by default, but without the trial of the checks before a landing.

Most repositories of tests hold no code that could be broken. Tests of the trial switch it on.
"""

from __future__ import annotations

from legion.config.files.user import UserConfig
from legion.config.sections.evidence import ProtectionSettings

PLAIN_SETTINGS = UserConfig(protection=ProtectionSettings(trial=False))

WITH_TRIAL = """\
[protection]
trial = true
[sandbox]
network = "host"
"""
"""With the trial, and with the indexes of packages, also where mirrors of them are at no public address."""


def without_trial(text: str) -> str:
    """The text of a settings file, in which the trial is off unless the text says otherwise."""
    if "trial =" in text:
        return text
    if "[protection]" in text:
        return text.replace("[protection]\n", "[protection]\ntrial = false\n", 1)
    # Before all tables: tests add to the last one.
    above, table, below = text.partition("\n[") if not text.startswith("[") else ("", "[", text[1:])
    return f"{above}\n[protection]\ntrial = false\n{table}{below}"
