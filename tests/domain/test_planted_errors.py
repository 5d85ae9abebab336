"""Errors that the trial plants: every language's file is broken where it runs, and what must stay first stays first."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from legion.domain.review.trial import PLANTED, breaks_at_run_time, breaks_when_read

PYTHON = (
    "",
    "x = 1\n",
    "#!/usr/bin/env python3\n# -*- coding: latin-1 -*-\nx = 1\n",
    '"""Doc."""\nfrom __future__ import annotations\nfrom __future__ import (\n    division,\n)\nx = 1\n',
    '"""Doc."""',
    "from __future__ import annotations",
)


@pytest.mark.parametrize("text", PYTHON)
def test_a_python_module_raises_when_it_runs_but_not_in_setup(text: str, tmp_path: Path):
    broken = breaks_at_run_time("a/b.py", text.encode())
    assert broken is not None
    (tmp_path / "b.py").write_bytes(broken)
    for check, code in (("check test", 1), ("setup", 0), (None, 1)):
        env = {**os.environ, **({"LEGION_CHECK": check} if check else {})}
        ran = subprocess.run(
            [sys.executable, str(tmp_path / "b.py")], env=env, capture_output=True, text=True, check=False
        )
        assert ran.returncode == code, ran.stderr
        assert (PLANTED in ran.stderr) is (code == 1)


def test_a_docstring_stays_one_and_a_file_that_cannot_be_parsed_is_broken_at_its_end():
    broken = breaks_at_run_time("a.py", b'"""Doc."""\nx = 1\n')
    assert broken is not None
    assert broken.startswith(b'"""Doc."""\nimport os')
    odd = breaks_at_run_time("a.py", b"print 'old'\n")
    assert odd is not None
    assert odd.startswith(b"print 'old'\n")


@pytest.mark.parametrize(
    ("name", "text", "argv"),
    [
        ("a.sh", "#!/bin/sh\nset -u\ntrue\n", ["sh"]),
        ("a.js", "#!/usr/bin/env node\n'use strict';\nlet x = 1;\n", ["node"]),
        ("a.mjs", "import fs from 'node:fs';\nexport const x = fs;\n", ["node"]),
        ("a.rb", "# frozen_string_literal: true\nx = 1\n", ["ruby"]),
        ("a.pl", "#!/usr/bin/perl\nuse strict;\n1;\n", ["perl"]),
    ],
)
def test_a_script_fails_when_it_runs_but_not_in_setup(name: str, text: str, argv: list[str], tmp_path: Path):
    if shutil.which(argv[0]) is None:
        pytest.skip(f"no script of its language runs here: {argv[0]} is missing")
    broken = breaks_at_run_time(name, text.encode())
    assert broken is not None
    (tmp_path / name).write_bytes(broken)
    for check, fails in (("check test", True), ("setup", False)):
        env = {**os.environ, "LEGION_CHECK": check}
        ran = subprocess.run([*argv, str(tmp_path / name)], env=env, capture_output=True, text=True, check=False)
        assert (ran.returncode != 0) is fails, ran.stderr


@pytest.mark.parametrize("path", ["src/lib.rs", "main.go", "A.java", "a.c", "a.ts", "a.vue", "a.kt", "a.php", "a.py"])
def test_every_language_gets_an_error_that_a_reader_of_the_file_notices(path: str):
    assert PLANTED.encode() in breaks_when_read(path, b"x\n")
    assert PLANTED.encode() in (breaks_at_run_time(path, b"x\n") or b"")


@pytest.mark.parametrize(("name", "flags"), [("a.c", ["-std=c89", "-pedantic"]), ("a.cc", ["-std=c++11"])])
def test_compiled_code_breaks_when_it_is_loaded_so_that_a_build_succeeds(name: str, flags: list[str], tmp_path: Path):
    if shutil.which("gcc") is None:
        pytest.skip("no compiler of C is here")
    broken = breaks_at_run_time(name, b"int main(void) { return 0; }\n")
    assert broken is not None
    (tmp_path / name).write_bytes(broken)
    program = tmp_path / "program"
    strict = ["-Wall", "-Wextra", "-Werror", "-lstdc++"]
    subprocess.run(["gcc", *flags, str(tmp_path / name), "-o", str(program), *strict], check=True)
    for check, fails in (("test", True), ("setup", False)):
        env = {**os.environ, "LEGION_CHECK": check}
        assert (subprocess.run([program], env=env, check=False).returncode != 0) is fails


@pytest.mark.parametrize("path", ["a.pyi", "types/a.d.ts"])
def test_declarations_never_run(path: str):
    assert breaks_at_run_time(path, b"x\n") is None
