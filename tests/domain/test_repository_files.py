"""Files that git takes for a repository: every disguise is found, and ordinary trees are left alone."""

from __future__ import annotations

import itertools
import re

import pytest

from legion.domain.landing.repository_files import (
    ChangedEntry,
    RepositoryFault,
    faults,
    links_into_git,
    links_outside,
    may_form_repository,
    needs_content,
    repositories,
)

FILE, PROGRAM, LINK, SUBMODULE = "100644", "100755", "120000", "160000"
INVISIBLE = [chr(code) for code in (*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF)]
ORDINARY = (
    ".gitignore", ".gitattributes", ".github/workflows/x.yml", ".gitkeep", "git", "git/hub.py", "dotgit/x",
    "x.git/README", ".git-blame-ignore-revs", "..git/x", "a git/x", "git~x", "docs/git~", "gi~1", "a/b~1", "...",
    "a/.../b", "é/.gıt/x",
)  # fmt: skip


def found(path: str, mode: str = FILE, content: str = "") -> RepositoryFault | None:
    one = faults([ChangedEntry(path=path, mode=mode, content=content)])
    return one[0].fault if one else None


def cases_of(name: str) -> list[str]:
    return ["".join(letters) for letters in itertools.product(*((c.lower(), c.upper()) for c in name))]


def disguises(name: str) -> list[str]:
    """Every way of another system to write a name."""
    hidden = [name[:at] + code + name[at:] for at in range(len(name) + 1) for code in INVISIBLE]
    ends = [f"{name}{end}" for end in (".", " ", "...", " . ", "::$INDEX_ALLOCATION", ":x")]
    return [name, *hidden, *ends]


DOT_GIT = [*disguises(".git"), *cases_of(".git"), *cases_of("git~1"), "git~2", "git~1 ", ".GIT.\u200c "]


@pytest.mark.parametrize("mode", [FILE, PROGRAM, LINK, SUBMODULE])
@pytest.mark.parametrize("place", ["{}", "{}/config", "a/{}", "a/b/{}/hooks/x", "a\\{}\\config"])
def test_every_name_of_a_git_folder_is_a_fault_wherever_it_stands(place: str, mode: str):
    assert {found(place.format(name), mode) for name in DOT_GIT} == {RepositoryFault.GIT_FOLDER}


@pytest.mark.parametrize("path", ORDINARY)
def test_ordinary_names_are_no_fault(path: str):
    assert found(path) is None
    assert not may_form_repository([path])


def test_gitmodules_under_another_name_is_a_fault_and_under_its_own_it_is_not():
    short = [*cases_of("gitmod~1")[:20], "gitmod~4", "gi7eba~1", "GI7EBA~9", "gi7eb~10", "g~100000"]
    others = [*(name for name in disguises(".gitmodules") if name != ".gitmodules"), ".GitModules", *short]
    assert {found(name) for name in others} == {RepositoryFault.DISGUISED_MODULES}
    assert found(".gitmodules") is None
    assert found(".gitmodules", LINK) is RepositoryFault.LINKED_MODULES
    assert found("sub/.gitmodules") is None


@pytest.mark.parametrize(
    ("text", "unsafe"),
    [
        ('[submodule "a"]\n\tpath = a\n\turl = https://example.org/a\n', False),
        ('[submodule "a"]\n\tpath = a\n\turl = ../a\n\tupdate = rebase\n', False),
        ('[submodule "a..b"]\n\tpath = a\n', False),
        ('[submodule "../../x"]\n\tpath = a\n', True),
        ('[SubModule "x/.."]\n', True),
        ('[submodule "a\\..\\b"]\n', True),
        ('[submodule "a"]\n\turl = --upload-pack=touch\n', True),
        ('[submodule "a"]\n\tURL="-x"\n', True),
        ('[submodule "a"]\n\tpath = -x\n', True),
        ('[submodule "a"]\n\tupdate = !touch x\n', True),
    ],
)
def test_entries_of_gitmodules_that_run_or_write_elsewhere_are_a_fault(text: str, unsafe: bool):
    assert found(".gitmodules", content=text) is (RepositoryFault.UNSAFE_MODULES if unsafe else None)
    assert found("docs/.gitmodules", content=text) is None, "git reads only the one at the top"


def test_paths_that_cannot_be_checked_out_are_a_fault_and_cost_nothing():
    deep = "d/" * 200_000 + ".git"
    assert found(deep) is RepositoryFault.TOO_LONG
    assert not may_form_repository(["d/" * 200_000 + "HEAD"])
    assert repositories(["d/" * 200_000 + "HEAD"], ["a"]) == ()
    assert found("é" * 127) is None
    assert found("é" * 128) is RepositoryFault.TOO_LONG
    assert found("d/" * 1999 + "ab") is None


def test_links_into_a_git_folder_are_found_and_other_links_are_not():
    targets = {"a": "../.git/hooks", "b": ".GIT", "c": "docs/readme", "d": "git", "e": "x/git~1/y"}
    entries = [ChangedEntry(path=path, mode=LINK, content=target) for path, target in targets.items()]
    plain = ChangedEntry(path="f", mode=FILE, content=".git/hooks")
    assert links_into_git([*entries, plain]) == ("a", "b", "e")
    assert [needs_content(path, mode) for path, mode in (("a", LINK), (".gitmodules", FILE), ("a", FILE))] == [
        True,
        True,
        False,
    ]


BARE = ("HEAD", "config", "objects/aa/b", "refs/heads/x")


@pytest.mark.parametrize("folder", ["", "docs2", "a/b/c.git"])
def test_a_bare_repository_of_plain_files_is_found_whichever_part_the_change_brings(folder: str):
    tree = [f"{folder}/{name}".lstrip("/") for name in BARE] + ["README", "src/a.py"]
    bare = {path for path in tree if path not in ("README", "src/a.py")}
    for size in range(len(bare) + 1):
        for changed in itertools.combinations(sorted(bare), size):
            assert may_form_repository(changed) is (size > 0)
            assert repositories(changed, tree) == ((folder or ".",) if size else ())
    assert repositories(["README", "src/a.py"], tree) == (), "what the target holds already blocks no other change"
    assert repositories([f"{folder}/description".lstrip("/")], tree) == (), "nothing in it that decides what git runs"


@pytest.mark.parametrize("missing", ["HEAD", "objects/aa/b", "refs/heads/x"])
def test_a_part_that_git_needs_is_missing_so_it_is_no_repository(missing: str):
    tree = [f"d/{name}" for name in BARE if name != missing]
    assert repositories(tree, tree) == ()


@pytest.mark.parametrize(
    "tree",
    [
        ("d/HEAD", "d/objects", "d/refs"),
        ("d/head", "d/Objects/x", "d/REFS/y"),
        ("d/HE\u200cAD", "d/objects./x", "d/refs /y"),
        ("d/HEAD", "d/commondir"),
        ("d/HEAD", "d/objectſ/x", "d/refs/y"),
    ],
)
def test_links_files_and_other_systems_names_make_a_repository_too(tree: tuple[str, ...]):
    assert repositories([tree[0]], tree) == ("d",)


def test_folders_with_the_names_of_parts_are_ordinary_alone():
    tree = ["src/objects/a.py", "src/refs/b.py", "config/x", "web/hooks/use.ts", "refs/HEAD", "HEAD/x", "docs/config"]
    assert may_form_repository(tree)
    assert repositories(tree, tree) == ()


def test_every_fault_has_a_sentence_of_its_own():
    assert len({fault.value for fault in RepositoryFault}) == len(RepositoryFault)
    assert all(re.fullmatch(r"[^.].*[^.]|\.gitmodules .*[^.]", fault.value) for fault in RepositoryFault)


@pytest.mark.parametrize(
    ("path", "target", "leaves"),
    [
        ("a", "b", False),
        ("docs/a", "../b", False),
        ("docs/a", "../docs/../b/c", False),
        ("docs/a", "../../b", True),
        ("a", "..", True),
        ("a", "b/../..", True),
        ("a", "..b", False),
        ("a", "/etc/passwd", True),
        ("a", "~/.ssh", True),
        ("docs/a", "C:/Windows", True),
        ("docs/a", r"..\..\b", True),
        ("a", r"\\host\share", True),
        ("a", "", False),
    ],
)
def test_links_that_lead_out_of_the_repository_are_found(path: str, target: str, leaves: bool):
    link = ChangedEntry(path=path, mode=LINK, content=target)
    plain = ChangedEntry(path=path, mode=FILE, content=target)
    assert links_outside([link, plain]) == ((path,) if leaves else ())
