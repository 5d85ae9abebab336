"""The rule that an agent never has more than its parent, as a check beside the code that grants."""

from __future__ import annotations

from legion.domain.agents.agent import TIERS, Rights


def widened(parent: Rights, child: Rights) -> list[str]:
    """What a child has and its parent lacks; always empty."""
    found = []
    if parent.tools is not None and (child.tools is None or not child.tools <= parent.tools):
        found.append("tools")
    for name in ("budget", "headcount", "depth"):
        upper, lower = getattr(parent, name), getattr(child, name)
        if upper is not None and (lower is None or lower > upper):
            found.append(name)
    if TIERS.index(child.tier) > TIERS.index(parent.tier):
        found.append("tier")
    return found
