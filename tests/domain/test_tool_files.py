"""Files that tools leave behind are found among the new files of a change."""

from __future__ import annotations

from legion.domain.review.protected_files import left_by_tools

NEW = ["src/a.py", "src/__pycache__/a.cpython-311.pyc", ".coverage", "web/node_modules/x/a.js", "a/target/debug/x.d"]


def test_new_files_of_tools_are_found():
    found = left_by_tools(NEW, lambda: ["src/b.py"], ())
    assert [one.path for one in found] == NEW[1:]
    assert found[0].sentence == "src/__pycache__/a.cpython-311.pyc: compiled Python"


def test_source_with_a_similar_name_is_none_of_them():
    paths = ["build/lib.rs", "coverage/report.py", "docs/target.md", "target/main.rs", "node_modules.md", "src/venv.py"]
    assert left_by_tools(paths, list, ()) == ()


def test_declared_files_and_kinds_that_the_repository_holds_are_meant():
    found = left_by_tools(NEW, lambda: ["tests/data/old.pyc"], ("web/**",))
    assert [one.path for one in found] == [".coverage", "a/target/debug/x.d"]


def test_the_repository_is_listed_only_if_there_is_a_reason():
    def listed() -> list[str]:
        raise AssertionError

    assert left_by_tools(["src/a.py"], listed, ()) == ()
