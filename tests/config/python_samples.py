"""Python repositories, and what `legion init` guesses for them."""

from __future__ import annotations

Sample = tuple[dict[str, str], str, str, tuple[str, ...], list[str]]
"""The files, the kind of project, [setup] with its key files, and the commands of the checks."""

BUILT = '[build-system]\nrequires = ["hatchling"]\n[project]\nname = "a"\n'
UNITTEST = "import unittest\n"
VENV = 'PATH="$PWD/.venv/bin:$PATH" .venv/bin/python'
PIP = "python3 -m venv .venv && echo '*' > .venv/.gitignore && .venv/bin/python -m pip install -q"

PYTHON: dict[str, Sample] = {
    "python with extras": (
        {"pyproject.toml": BUILT + '[project.optional-dependencies]\ndev = ["pytest>8"]', "tests/test_a.py": ""},
        "Python",
        f"{PIP} -e '.[dev]'",
        ("pyproject.toml",),
        [f"{VENV} -m pytest -q"],
    ),
    "python with a src folder": (
        {"pyproject.toml": BUILT, "src/a/__init__.py": "", "tests/test_a.py": ""},
        "Python",
        f"{PIP} -e . pytest",
        ("pyproject.toml",),
        [f'PYTHONPATH="$PWD/src" {VENV} -m pytest -q'],
    ),
    "python with requirements": (
        {"requirements.txt": "x", "requirements-dev.txt": "pytest", ".gitignore": ".venv/\n", "test_a.py": ""},
        "Python",
        "python3 -m venv .venv && .venv/bin/python -m pip install -q -r requirements.txt -r requirements-dev.txt",
        ("requirements.txt", "requirements-dev.txt"),
        [f"{VENV} -m pytest -q"],
    ),
    "python that is not built": (
        {"pyproject.toml": "[project]\ndependencies = [\"requests>2; python_version>'3'\"]", "test_a.py": UNITTEST},
        "Python",
        f"{PIP} 'requests>2; python_version>'\"'\"'3'\"'\"''",
        ("pyproject.toml",),
        [f"{VENV} -m unittest"],
    ),
    "python with groups": (
        {"pyproject.toml": '[dependency-groups]\ntest = ["pytest"]', "tests/test_a.py": ""},
        "Python",
        f"{PIP} --upgrade pip && .venv/bin/python -m pip install -q --group test",
        ("pyproject.toml",),
        [f"{VENV} -m pytest -q"],
    ),
    "python with uv": (
        {"pyproject.toml": BUILT + '[dependency-groups]\ntest = ["pytest"]', "uv.lock": "", "tests/test_a.py": ""},
        "Python",
        "uv sync --frozen --group test",
        ("uv.lock", "pyproject.toml"),
        [f"{VENV} -m pytest -q"],
    ),
    "python with poetry": (
        {
            "pyproject.toml": '[tool.poetry.group.dev.dependencies]\npytest = "*"',
            "poetry.lock": "",
            "tests/a_test.py": "",
        },
        "Python",
        "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-interaction --no-root",
        ("poetry.lock",),
        [f"{VENV} -m pytest -q"],
    ),
    "python with setup.cfg": (
        {"setup.cfg": "[tool:pytest]", "setup.py": "", "pkg/tests/test_a.py": ""},
        "Python",
        f"{PIP} -e . pytest",
        ("setup.py", "setup.cfg"),
        [f"{VENV} -m pytest -q"],
    ),
    "python with requirements for tests": (
        {"requirements/dev.txt": "tox", "requirements/tests.txt": "pytest", "setup.py": "", "tests/test_a.py": ""},
        "Python",
        f"{PIP} -r requirements/tests.txt -e .",
        ("requirements/tests.txt", "setup.py"),
        [f"{VENV} -m pytest -q"],
    ),
    "python with extras in setup.cfg": (
        {
            "setup.cfg": "[options.extras_require]\ndev =\n  tox\ntesting =\n  pytest\n",
            "setup.py": "",
            "testing/test_a.py": "",
        },
        "Python",
        f"{PIP} -e '.[testing]'",
        ("setup.py", "setup.cfg"),
        [f"{VENV} -m pytest -q"],
    ),
    "python with what poetry, hatch, uv and tox alone know": (
        {
            "pyproject.toml": BUILT
            + '[tool.poetry.group.test.dependencies]\npytest = "^8"\nPyYAML = "*"\n'
            + '[tool.hatch.envs.test]\ndependencies = ["trio>=0.2", "{root:uri}"]\n'
            + '[tool.uv]\ndev-dependencies = ["freezegun>=1"]\n',
            "tox.ini": "[testenv]\ndeps =\n  pretend\n  -r other.txt\n",
            "tests/test_a.py": "",
        },
        "Python",
        f"{PIP} -e . 'freezegun>=1' pytest PyYAML 'trio>=0.2' pretend",
        ("pyproject.toml",),
        [f"{VENV} -m pytest -q"],
    ),
    "python with pdm": (
        {
            "pyproject.toml": BUILT + '[tool.pdm.dev-dependencies]\ntest = ["pytest"]',
            "pdm.lock": "",
            "tests/test_a.py": "",
        },
        "Python",
        "pdm sync --no-self",
        ("pdm.lock",),
        [f"{VENV} -m pytest -q"],
    ),
    "python with hatch": (
        {
            "pyproject.toml": BUILT + '[tool.hatch.envs.default]\ndependencies = ["pytest"]',
            "src/a/__init__.py": "",
            "tests/test_a.py": "",
        },
        "Python",
        f"{PIP} -e . pytest",
        ("pyproject.toml",),
        [f'PYTHONPATH="$PWD/src" {VENV} -m pytest -q'],
    ),
    "python with nox": (
        {
            "noxfile.py": "session.install('pytest')",
            "setup.py": "",
            "a/__init__.py": "",
            "tests/test_a.py": "import pytest",
        },
        "Python",
        f"{PIP} -e . pytest",
        ("setup.py",),
        [f'PYTHONPATH="$PWD" {VENV} -m pytest -q'],
    ),
    "python with a namespace package": (
        {"pyproject.toml": BUILT, "src/corp/a/__init__.py": "", "tests/test_a.py": "import pytest"},
        "Python",
        f"{PIP} -e . pytest",
        ("pyproject.toml",),
        [f'PYTHONPATH="$PWD/src" {VENV} -m pytest -q'],
    ),
    "python with a uv workspace": (
        {
            "pyproject.toml": BUILT
            + '[tool.uv.workspace]\nmembers = ["libs/*"]\n[dependency-groups]\ndev = ["pytest"]',
            "uv.lock": "",
            "libs/b/pyproject.toml": BUILT,
            "libs/b/src/b/__init__.py": "",
            "tests/test_a.py": "",
        },
        "Python",
        "uv sync --frozen",
        ("uv.lock", "pyproject.toml"),
        [f'PYTHONPATH="$PWD/libs/b/src" {VENV} -m pytest -q'],
    ),
    "python with tox": (
        {"tox.ini": "pytest", "tests/test_a.py": ""},
        "Python",
        f"{PIP} pytest",
        (),
        [f"{VENV} -m pytest -q"],
    ),
    "python with unittest in a package": (
        {"a.py": "", "tests/__init__.py": "", "tests/test_a.py": UNITTEST},
        "Python",
        "",
        (),
        ["python3 -m unittest"],
    ),
    "python with unittest in a folder": (
        {"a.py": "", "tests/test_a.py": UNITTEST},
        "Python",
        "",
        (),
        ["python3 -m unittest discover -s tests"],
    ),
    "python with unittest where CI looks": (
        {
            "setup.py": "",
            "src/corp/shop/tests/test_a.py": UNITTEST,
            "tox.ini": "[testenv]\ncommands =\n  coverage run -p -m unittest discover -s src/corp {posargs}\n",
        },
        "Python",
        f"{PIP} -e .",
        ("setup.py",),
        [f'PYTHONPATH="$PWD/src" {VENV} -m unittest discover -s src/corp'],
    ),
    "python with unittest in a workflow": (
        {
            "a.py": "",
            "checks/test_a.py": UNITTEST,
            ".gitlab-ci.yml": "script: python3 -m unittest discover -v --start-directory=checks -p 'test_*.py'\n",
        },
        "Python",
        "",
        (),
        ["python3 -m unittest discover -v --start-directory=checks -p 'test_*.py'"],
    ),
    "python with unittest below src": (
        {"setup.py": "", "src/shop/__init__.py": "", "src/shop/tests/test_a.py": UNITTEST},
        "Python",
        f"{PIP} -e .",
        ("setup.py",),
        [f'PYTHONPATH="$PWD/src" {VENV} -m unittest discover -s src'],
    ),
    "django": (
        {"manage.py": "", "requirements.txt": "django", "shop/tests.py": "from django.test import TestCase"},
        "Python",
        f"{PIP} -r requirements.txt",
        ("requirements.txt",),
        [f"{VENV} manage.py test"],
    ),
}
