"""The folders that a guessed check imports a repository's packages from."""

from __future__ import annotations

import pytest

from tests.config.python_samples import BUILT, VENV
from tests.config.test_guess import guessed

SETUPTOOLS = '[build-system]\nrequires = ["setuptools"]\n[project]\nname = "a"\n'
WHEEL = "[tool.hatch.build.targets.wheel]"
SETUP_CFG = "[options]\npackage_dir =\n    = lib\n[options.packages.find]\nwhere = lib\n"
LAYOUTS = {
    "a folder that setuptools searches": (
        {"pyproject.toml": SETUPTOOLS + '[tool.setuptools.packages.find]\nwhere = ["lib"]', "lib/foo/__init__.py": ""},
        "$PWD/lib",
    ),
    "package-dir": (
        {"pyproject.toml": SETUPTOOLS + '[tool.setuptools.package-dir]\n"" = "python"', "python/foo.py": ""},
        "$PWD/python",
    ),
    "package-dir of a package": (
        {"pyproject.toml": SETUPTOOLS + '[tool.setuptools.package-dir]\n"a.b" = "lib/a/b"', "lib/a/b/c.py": ""},
        "$PWD/lib",
    ),
    "setup.py": ({"setup.py": "find_packages('lib'), package_dir={'': 'lib'}", "lib/a.py": ""}, "$PWD/lib"),
    "setup.cfg": ({"setup.py": "", "setup.cfg": SETUP_CFG, "lib/a.py": ""}, "$PWD/lib"),
    "poetry": (
        {"pyproject.toml": '[tool.poetry]\npackages = [{include = "foo", from = "lib"}]', "lib/foo/__init__.py": ""},
        "$PWD/lib",
    ),
    "hatch": ({"pyproject.toml": f'{BUILT}{WHEEL}\npackages = ["code/foo"]', "code/foo/__init__.py": ""}, "$PWD/code"),
    "pdm": ({"pyproject.toml": BUILT + '[tool.pdm.build]\npackage-dir = "lib"', "lib/foo.py": ""}, "$PWD/lib"),
    "maturin": ({"pyproject.toml": BUILT + '[tool.maturin]\npython-source = "py"', "py/foo.py": ""}, "$PWD/py"),
    "flat": ({"pyproject.toml": BUILT, "foo/__init__.py": ""}, "$PWD"),
    "flat, a module": ({"setup.py": "", "foo.py": ""}, "$PWD"),
    "flat, a namespace": ({"setup.py": "", "corp/shop/__init__.py": "", "tests/unit/__init__.py": ""}, "$PWD"),
    "src and a uv workspace": (
        {
            "pyproject.toml": BUILT + '[tool.uv.workspace]\nmembers = ["packages/*"]\nexclude = ["packages/old"]',
            "src/a/__init__.py": "",
            "packages/b/pyproject.toml": BUILT,
            "packages/b/src/b/__init__.py": "",
            "packages/c/pyproject.toml": BUILT,
            "packages/c/c/__init__.py": "",
            "packages/old/pyproject.toml": BUILT,
            "packages/old/src/old/__init__.py": "",
        },
        "$PWD/src:$PWD/packages/b/src:$PWD/packages/c",
    ),
    "no package": ({"requirements.txt": "pytest", "a.py": ""}, ""),
    "outside": ({"setup.py": "package_dir={'': '../other'}", "foo.py": ""}, ""),
    "a name that a shell reads": ({"setup.py": "find_packages('$(evil)')", "$(evil)/foo.py": ""}, ""),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_checks_import_the_packages_of_their_own_tree(name: str):
    files, expected = LAYOUTS[name]
    _, config = guessed({**files, "tests/test_a.py": "import pytest"})
    path = f'PYTHONPATH="{expected}" ' if expected else ""
    assert config.checks[0].command.startswith(path)
    assert config.checks[0].command.removeprefix(path).startswith((VENV, "python3"))


@pytest.mark.parametrize("line", ["-e .[full]", "-e .", ".", ".[test]  # all", "--editable=."])
def test_requirements_that_install_the_project_are_enough(line: str):
    _, config = guessed({"requirements.txt": f"{line}\npytest\n", "setup.py": "", "tests/test_a.py": ""})
    assert config.setup is not None
    assert config.setup.run.endswith("pip install -q -r requirements.txt")
