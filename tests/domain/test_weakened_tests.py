"""Weakened tests are pointed out in every language, and honest changes are left alone."""

from __future__ import annotations

import pytest

from legion.domain.review.diffs import DiffLine, FileDiff, Hunk
from legion.domain.review.weakened_tests import Sign, weakenings


def edit(path: str, removed: str = "", added: str = "", *, new: bool = False, gone: bool = False) -> FileDiff:
    went = tuple(DiffLine(number=n, text=text) for n, text in enumerate(removed.splitlines(), 1))
    came = tuple(DiffLine(number=n, text=text) for n, text in enumerate(added.splitlines(), 1))
    return FileDiff(path=path, new=new, gone=gone, hunks=(Hunk(removed=went, added=came, text=""),))


def signs(*files: FileDiff, commands: tuple[str, ...] = ()) -> list[Sign]:
    return [found.sign for found in weakenings(files, commands)]


ASSERTIONS = [
    ("tests/test_a.py", "    assert total == 3"),
    ("tests/test_a.py", "        self.assertEqual(total, 3)"),
    ("tests/test_a.py", "    with pytest.raises(ValueError):"),
    ("tests/test_a.py", "    sent.assert_called_once_with(1)"),
    ("src/a.test.ts", "  expect(total).toBe(3)"),
    ("src/a.spec.js", "  assert.strictEqual(total, 3)"),
    ("pkg/a_test.go", '\t\tt.Errorf("got %d", total)'),
    ("pkg/a_test.go", "\trequire.Equal(t, 3, total)"),
    ("src/lib.rs", "        assert_eq!(total, 3);"),
    ("src/test/java/ATest.java", "    assertEquals(3, total);"),
    ("src/test/java/ATest.java", "    assertThat(total).isEqualTo(3);"),
    ("spec/a_spec.rb", "    expect(total).to eq 3"),
    ("test/a_test.rb", "    assert_equal 3, total"),
    ("tests/a.sh", '[ "$total" = 3 ]'),
    ("tests/a.bats", "  grep -q three out.txt"),
]


@pytest.mark.parametrize(("path", "line"), ASSERTIONS)
def test_a_removed_assertion_is_pointed_out(path, line):
    assert signs(edit(path, line)) == [Sign.FEWER_ASSERTIONS]


@pytest.mark.parametrize(("path", "line"), ASSERTIONS)
def test_an_assertion_that_is_commented_out_is_as_good_as_gone(path, line):
    mark = "# " if path.endswith((".py", ".rb", ".sh", ".bats")) else "// "
    assert signs(edit(path, line, f"{mark}{line.strip()}")) == [Sign.FEWER_ASSERTIONS]


@pytest.mark.parametrize(("path", "line"), ASSERTIONS)
def test_an_assertion_that_moved_or_was_rewritten_is_no_sign(path, line):
    assert signs(edit(path, line, f"    {line}")) == []
    assert signs(edit(path, line), edit(f"tests/{path}", "", line)) == []
    assert signs(edit(path, line, line.replace("3", "4"))) == []


@pytest.mark.parametrize(
    "empty", ["assert True", "assert 1 == 1", "self.assertTrue(True)", "expect(true).toBe(true)", "assert_eq!(1, 1);"]
)
def test_an_assertion_that_says_nothing_replaces_none(empty):
    assert signs(edit("tests/test_a.py", "    assert total == 3", f"    {empty}")) == [Sign.FEWER_ASSERTIONS]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("tests/test_a.py", "@pytest.mark.skip(reason='later')"),
        ("tests/test_a.py", "@pytest.mark.xfail"),
        ("tests/test_a.py", "    pytest.skip('later')"),
        ("tests/test_a.py", "    @unittest.skipIf(True, 'later')"),
        ("tests/test_a.py", "        self.skipTest('later')"),
        ("tests/conftest.py", "collect_ignore = ['test_a.py']"),
        ("src/a.test.ts", "  it.skip('adds', () => {"),
        ("src/a.test.ts", "describe.only('one', () => {"),
        ("src/a.spec.js", "  xit('adds', () => {"),
        ("pkg/a_test.go", '\tt.Skip("later")'),
        ("pkg/a_test.go", "//go:build ignore"),
        ("src/lib.rs", "    #[ignore]"),
        ("src/test/java/ATest.java", "    @Disabled"),
        ("spec/a_spec.rb", "    pending 'later'"),
        ("test/a_test.rb", "    skip"),
    ],
)
def test_an_added_skip_is_pointed_out_with_its_line(path, line):
    (found,) = weakenings([edit(path, "", f"\n{line}")], ())
    assert (found.sign, found.line, found.words) == (Sign.SKIP, 2, line.strip())
    assert signs(edit(path, line, f"  {line}")) == []


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("Makefile", "\tpytest -q || true"),
        ("Makefile", "\t-pytest -q"),
        ("package.json", '    "test": "jest || exit 0",'),
        ("package.json", '    "test": "jest --passWithNoTests",'),
        (".github/workflows/ci.yml", "        continue-on-error: true"),
        (".gitlab-ci.yml", "  allow_failure: true"),
        ("legion.toml", 'run = "pytest -q || :"'),
        ("legion.toml", "run = 'pytest -q; true'"),
        ("tox.ini", 'commands = pytest -k "not slow"'),
        ("ci/check.sh", "set +e"),
        ("ci/check.sh", "run_all || echo failed"),
    ],
)
def test_a_command_whose_failure_no_longer_counts_is_pointed_out(path, line):
    assert signs(edit(path, "", line), commands=("sh ci/check.sh",)) == [Sign.SILENCED]


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("src/app.py", "assert total == 3"),
        ("docs/ci.md", "pytest || true"),
        ("deploy/start.sh", "rm -f old || true"),
        ("Makefile", "\tpytest -q || { echo red; exit 1; }"),
        ("tests/test_a.py", "skip = 3"),
        ("tests/test_a.py", "# pytest.skip would be wrong here"),
        ("src/it.ts", "profit('x')"),
        ("package.json", '    "test": "jest"'),
    ],
)
def test_what_only_looks_like_a_sign_is_none(path, line):
    assert signs(edit(path, "", line)) == []


def test_a_removed_test_file_is_pointed_out_unless_all_of_it_moved():
    test = "def test_a():\n    assert total == 3"
    assert signs(edit("tests/test_a.py", test, gone=True)) == [Sign.FILE_REMOVED]
    assert signs(edit("tests/test_a.py", test, gone=True), edit("tests/test_b.py", "", test, new=True)) == []
    assert signs(edit("tests/data/a.txt", "1", gone=True)) == [Sign.FILE_REMOVED]
    assert signs(edit("src/a.py", "x = 1", gone=True)) == []
