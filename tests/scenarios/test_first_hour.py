"""`legion init` and `legion doctor --try` at a real terminal: they follow the trial of the checks, and may leave it."""

from __future__ import annotations

from pathlib import Path

from tests.support.legion import PATIENCE, squad
from tests.support.person_terminal import terminals
from tests.support.repository import Repository

ON = "[protection]\ntrial = true"
TEST = "import unittest\nimport price\n\n\nclass Test(unittest.TestCase):\n    def test_it(self):\n        {}\n"


def repository(root: Path, test: str) -> Repository:
    made = Repository(root, "")
    made.git("rm", "--quiet", "legion.toml")
    code = "def price():\n    return 7\n"
    made.commit("source", {"price.py": code, "tests/__init__.py": "", "tests/test_price.py": TEST.format(test)})
    return made


def test_ctrl_c_leaves_the_trial_to_the_background(tmp_path: Path):
    shop = repository(tmp_path / "shop", "__import__('signal').pause()")
    with squad(tmp_path, settings=ON) as one, terminals(one, shop.root) as open_terminal:
        init = open_terminal("init")
        init.shows("Trying the checks: test on the code as it is")
        init.type("\x03")
        init.shows("continues in the background")
        assert init.exit_code() == 0
        assert one.client.trial(str(shop.root)).state == "running"


def test_doctor_tries_the_checks_again_and_says_what_it_found(tmp_path: Path):
    shop = repository(tmp_path / "shop", "self.assertEqual(price.price(), 7)")
    with squad(tmp_path, settings=ON) as one, terminals(one, shop.root) as open_terminal:
        init = open_terminal("init")
        init.shows(r"test \d+ s, 1 test, ok", PATIENCE)
        init.shows("sees the code: yes")
        assert init.exit_code() == 0
        # Only the code that is committed counts.
        (shop.root / "price.py").write_text("broken(")
        doctor = open_terminal("doctor", "--try")
        doctor.shows("passes: .*test \\d+ s, 1 test, ok", PATIENCE)
        doctor.shows("they fail when the code is broken")
        doctor.exit_code()
        lines = one.client.history(str(shop.root), last=0).lines
        assert [line.data["sees"] for line in lines if line.kind == "check.tried"] == ["yes", "yes"]


def test_init_says_that_a_version_which_comes_from_tags_has_none(tmp_path: Path):
    shop = repository(tmp_path / "shop", "pass")
    shop.commit("build", {"pyproject.toml": '[build-system]\nrequires = ["setuptools", "setuptools-scm>=8"]\n'})
    with squad(tmp_path) as one:

        def notes() -> str:
            return one.cli("init", "--dry-run", cwd=shop.root).stderr

        assert "git fetch --tags" in notes()
        shop.git("tag", "v1.0")
        assert "git fetch --tags" not in notes()
