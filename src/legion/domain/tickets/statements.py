"""Lines by which an agent reports on its way: `STATUS: did -> next -> [confidence]`, and a block of smoke tests.

They are claims, shown to people and used for nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_STATUS = re.compile(r"^[ \t>*_`-]*STATUS:[*_`]*[ \t]*(\S.*?)[ \t*_`]*$", re.MULTILINE)
_SMOKE_TESTS = re.compile(
    r"^[ \t>*_`-]*SMOKE_TESTS:?[*_`]*[ \t]*\n(.*?)^[ \t>*_`-]*END_SMOKE_TESTS\b", re.MULTILINE | re.DOTALL
)
_LONGEST_STATUS, _LONGEST_TESTS = 200, 4000


@dataclass(frozen=True, kw_only=True)
class Statements:
    status: str = ""
    """The last one, on one line."""
    smoke_tests: str = ""
    """The last complete block, one test per line."""


def statements_in(text: str) -> Statements:
    """What an agent's output says about its progress."""
    said, blocks = _STATUS.findall(text), _SMOKE_TESTS.findall(text)
    tests = "\n".join(line.rstrip() for line in blocks[-1].strip("\n").splitlines()) if blocks else ""
    return Statements(
        status=" ".join(said[-1].split())[:_LONGEST_STATUS] if said else "", smoke_tests=tests[:_LONGEST_TESTS]
    )
