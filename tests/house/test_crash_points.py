"""The list of crash points and the code agree."""

from __future__ import annotations

import ast
from collections import defaultdict

from legion.system.crash import Point
from tests.support.codebase import files_with, place, tree


def test_every_crash_point_is_reached_at_exactly_one_place():
    places: dict[str, list[str]] = defaultdict(list)
    for path in files_with(r"\breach\(|CrashPoints\(", "src"):
        for node in ast.walk(tree(path)):
            if not isinstance(node, ast.Call):
                continue
            # `finish` reaches the two points that its caller names.
            given = {"reach": node.args[:1], "CrashPoints": [one.value for one in node.keywords]}
            for argument in given.get(ast.unparse(node.func).split(".")[-1], []):
                places[ast.unparse(argument).split(".")[-1]].append(place(path, node.lineno))
    assert {name for name in places if name.isupper()} <= set(Point.__members__)
    wrong = {point.name: places[point.name] for point in Point if len(places[point.name]) != 1}
    assert not wrong, wrong


def test_every_crash_point_is_named_room_what_when():
    for point in Point:
        assert len(point.value.split(".")) == 3, point.value
        assert point.value.replace(".", "_").replace("-", "_").upper().endswith(point.name)
