"""Nothing of the machine that wrote a file stays in it."""

from __future__ import annotations

import re

import pytest

from tests.support.codebase import place, project_files

# Written in pieces, so that this file does not find itself.
REGISTRY_HOSTS = re.compile(
    "|".join([r"pypi\." + "org", r"python" + r"hosted\.org", r"registry\.npm" + "js", "deb" + r"\.debian\.org"])
)
HOME_FOLDERS = re.compile(r"(?<![\w.$}/-])/(?:ro" + r"ot|(?:ho" + r"me|Us" + r"ers)/(?!ada\b)[\w.-]+)/[\w.-]+")


def findings(pattern: re.Pattern[str]) -> list[str]:
    found = []
    for path in project_files():
        for number, line in enumerate(path.read_bytes().decode("utf-8", "replace").splitlines(), 1):
            match = pattern.search(line)
            if match:
                found.append(f"{place(path, number)} {match[0]}")
    return found


def test_no_file_names_a_package_registry():
    assert findings(REGISTRY_HOSTS) == []


def test_no_file_names_a_home_folder():
    """Examples that need one use the home of ada."""
    assert findings(HOME_FOLDERS) == []


@pytest.mark.parametrize(
    ("text", "caught"),
    [
        ("see /ho" + "me/bob/src", True),
        ('"/Us' + 'ers/bob/x"', True),
        ("/ro" + "ot/.ssh", True),
        ("/ho" + "me/ada/src", False),
        ("/sys" + "/ro" + "ot/x", False),
        ("https://example.test/ho" + "me/bob/x", False),
    ],
)
def test_a_home_folder_is_told_from_other_paths(text, caught):
    assert bool(HOME_FOLDERS.search(text)) == caught
