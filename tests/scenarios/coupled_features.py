"""Two packages with six features each that change the same definitions, and the agent that builds them.

It is a file of the test's repository: `python3 coupled_features.py build PACKAGE FEATURE` is an agent, and
`... prove PACKAGE FEATURE ...` its proof. The agent keeps what it finds: after a conflict it writes the file with the
features of both.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

FEATURES = {
    "shop": ("tax", "coupon", "currency", "gift", "weight", "note"),
    "notes": ("bold", "italic", "title", "link", "code", "quote"),
}
FILES = {"shop": Path("shop/cart.py"), "notes": Path("notes/render.py")}


def wish(package: str, feature: str) -> str:
    """What a person writes: it names what changes."""
    return f"`Cart.__init__` takes a {feature}." if package == "shop" else f"A function `{feature}` in notes/render.py."


def text(package: str, features: Sequence[str]) -> str:
    """The package's file with these features."""
    if package == "shop":
        # Each gives the same signature one more parameter.
        wanted = "".join(f", {one}=None" for one in features)
        kept = "".join(f"        self.{one} = {one}\n" for one in features)
        return f"class Cart:\n    def __init__(self, items{wanted}):\n        self.items = items\n{kept}"
    # Each adds a function at the end, and its name to one list.
    listed = ", ".join(repr(one) for one in features)
    parts = [f"\n\ndef {one}(text):\n    return '<{one}>' + text\n" for one in features]
    return f"__all__ = [{listed}]\n{''.join(parts)}"


def build(package: str, feature: str) -> None:
    there = FILES[package].read_text()
    words = ("{}=None", "def {}(") if package == "shop" else ("def {}(",)
    known = [one for one in FEATURES[package] if one == feature or any(word.format(one) in there for word in words)]
    FILES[package].write_text(text(package, known))


def proves(package: str, feature: str) -> bool:
    sys.path.insert(0, str(Path.cwd()))
    if package == "shop":
        cart = importlib.import_module("shop.cart").Cart([], **{feature: 7})
        return bool(getattr(cart, feature) == 7)
    render = importlib.import_module("notes.render")
    return bool(getattr(render, feature)("x") == f"<{feature}>x" and feature in render.__all__)


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build(*sys.argv[2:])
    else:
        wanted = sys.argv[2:]
        assert all(proves(*pair) for pair in zip(wanted[::2], wanted[1::2], strict=True))
