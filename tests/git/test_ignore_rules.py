"""What a commit leaves out is told by the commit alone."""

from __future__ import annotations

import pytest

from legion.git.trees.ignore_rules import is_left_out
from tests.git.making import Grounds, Person


@pytest.mark.parametrize(
    ("path", "left_out"),
    [
        (".env", True),
        ("web/.env", True),
        ("web/own/deep.txt", True),
        ("web/local.json", True),
        ("local.json", False),
        ("kept.env", False),
        ("web/tracked.env", False),
        ("link.env", False),
        (":(top)x", False),
        ("a[b].env", True),
    ],
)
def test_ignored_and_not_tracked_means_left_out(person: Person, tmp_path, path: str, left_out: bool):
    (person.path / "link.env").symlink_to("nowhere")
    person.git("add", "link.env")
    files = {".gitignore": "*.env\n!kept.env\nown/\n", "web/.gitignore": "local.json\n", "web/tracked.env": "x\n"}
    for name, text in files.items():
        (person.path / name).parent.mkdir(exist_ok=True)
        (person.path / name).write_text(text)
        person.git("add", "--force", name)
    person.git("commit", "-qm", "ignores")
    hub = Grounds(tmp_path / "legion", person).hub
    assert is_left_out(hub, person.head, path) is left_out
