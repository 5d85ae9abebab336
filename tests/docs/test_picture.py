"""The tool that turns a terminal into a picture, and the picture that it made."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import pytest

from tests.support.codebase import ROOT

SVG = "{http://www.w3.org/2000/svg}"


def picture(captured: str) -> ElementTree.Element:
    made = subprocess.run(
        [sys.executable, ROOT / "tools/picture.py"], input=captured, capture_output=True, text=True, check=True
    )
    return ElementTree.fromstring(made.stdout)


def test_every_text_keeps_its_words_its_colour_and_its_column():
    drawn = picture("\x1b[?25l\x1b[32m✓ done\x1b[0m  \x1b[1ma < b\x1b[0m\n\n  plain\n").iter(f"{SVG}text")
    done, bold, plain = list(drawn)
    assert [done.text, bold.text, plain.text] == ["✓ done", "a < b", "plain"]
    assert done.get("fill") != plain.get("fill") == bold.get("fill")
    assert bold.get("font-weight") == "bold"
    start, second, indented = (float(text.get("x", 0)) for text in (done, bold, plain))
    assert second - start == pytest.approx(4 * (indented - start))


def test_the_picture_in_the_readme_is_one_of_the_demo_as_it_is():
    shown = " ".join(text.text or "" for text in ElementTree.parse(ROOT / "docs/pictures/demo.svg").iter(f"{SVG}text"))
    for words in (
        "The agents are real Claude Code; what their model replies is scripted",
        "kill -9",
        "goes back: it conflicts",
        "landed as",
    ):
        assert words in shown
