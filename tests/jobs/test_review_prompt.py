"""What of a change stands in a reader's prompt, and what is known to be cut short there."""

from __future__ import annotations

import pytest

from legion.jobs.review.prompt import _bounded, cut_short


def part(path: str, lines: int) -> str:
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{lines} @@\n"
    return head + "".join(f"+line {number} of {path}\n" for number in range(lines))


@pytest.mark.parametrize("lines", [1, 40, 3000])
@pytest.mark.parametrize("files", [1, 3, 400])
def test_what_is_not_called_cut_short_stands_there_as_a_whole(files: int, lines: int):
    parts = {path: part(path, lines) for path in (f"f{number}.py" for number in range(files))}
    diff = "".join(parts.values())
    shown, cut = _bounded(diff, "whole.diff"), cut_short(diff)
    assert all(text.rstrip("\n") in shown for path, text in parts.items() if path not in cut)
    assert (shown == diff) == (not cut)
    assert ("All of it is in whole.diff" in shown) == bool(cut)
    assert set(cut) <= set(parts)
