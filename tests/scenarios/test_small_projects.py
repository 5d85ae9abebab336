"""Small projects of many languages and layouts, played with the tools of this machine: the guess of `legion init`
prepares them, passes, and is red where the code is broken. What is not installed is skipped, by name."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from legion.wire.projects import TrialPage, TryChecks
from tests.support.legion import Project, Squad, squad
from tests.support.repository import Repository
from tests.support.settings import WITH_TRIAL

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


@dataclass(frozen=True)
class Small:
    tools: str
    files: Mapping[str, str]
    lock: str = ""
    """Makes the lock file before the first commit, as its author did."""
    index: str = ""
    """The host of its packages, where a machine may have the tool and not the packages."""


def toml(extra: str = "", build: str = 'requires = ["setuptools>=61"]\nbuild-backend = "setuptools.build_meta"') -> str:
    return f'[build-system]\n{build}\n[project]\nname = "shop"\nversion = "1"\nrequires-python = ">=3.11"\n{extra}'


def node(script: str = "node test.js", **parts: object) -> str:
    return json.dumps({"name": "shop", "version": "1.0.0", "scripts": {"test": script} if script else {}, **parts})


HATCH = 'requires = ["hatchling"]\nbuild-backend = "hatchling.build"'
PDM = 'requires = ["pdm-backend"]\nbuild-backend = "pdm.backend"'
POETRY = 'requires = ["poetry-core"]\nbuild-backend = "poetry.core.masonry.api"'
UV = 'requires = ["uv_build"]\nbuild-backend = "uv_build"'
POETRY_DEV = '[tool.poetry.group.dev.dependencies]\npytest = "*"\n'
PDM_DEV = '[tool.pdm.dev-dependencies]\ntest = ["pytest"]\n'
CODE = "def price():\n    return 7\n"
TEST = {"tests/test_price.py": "import pytest\nfrom {} import price\n\n\ndef test_it():\n    assert price() == 7\n"}
# A child process in another folder, which finds an installed copy if there is one.
CHILD = {
    "tests/test_child.py": "import subprocess, sys, tempfile\n\n\ndef test_it():\n"
    "    words = [sys.executable, '-c', 'import {0}; {0}.price()']\n"
    "    subprocess.run(words, cwd=tempfile.gettempdir(), check=True)\n"
}
DEV = '[dependency-groups]\ndev = ["pytest"]\n'


def python(module: str = "shop") -> dict[str, str]:
    return {name: text.format(module) for name, text in {**TEST, **CHILD}.items()}


IMPORT = "import { price } from './price.js'\n"
VITEST = f"{IMPORT}import {{ test, expect }} from 'vitest'\ntest('it', () => expect(price()).toBe(7))\n"
AVA = f"{IMPORT}import test from 'ava'\ntest('it', (t) => t.is(price(), 7))\n"
ESM = "export const price = () => 7\n"
CJS = "exports.price = () => 7\n"
ASSERT = "require('assert').equal(require('./price').price(), 7)\n"
JAVA = {
    "src/main/java/Shop.java": "public class Shop { public static int price() { return 7; } }\n",
    "src/test/java/ShopTest.java": "public class ShopTest { @org.junit.Test public void it() { "
    "org.junit.Assert.assertEquals(7, Shop.price()); } }\n",
}
PROJECTS = {
    "pip, flat": Small("python3", {"pyproject.toml": toml(), "shop/__init__.py": CODE, **python()}),
    "pip, src": Small("python3", {"pyproject.toml": toml(), "src/shop/__init__.py": CODE, **python()}),
    "setuptools where": Small(
        "python3",
        {
            "pyproject.toml": toml('[tool.setuptools.packages.find]\nwhere = ["lib"]\n'),
            "lib/shop/__init__.py": CODE,
            **python(),
        },
    ),
    "setuptools package-dir": Small(
        "python3",
        {
            "pyproject.toml": toml('[tool.setuptools]\npackages = ["shop"]\npackage-dir = {"" = "lib"}\n'),
            "lib/shop/__init__.py": CODE,
            **python(),
        },
    ),
    "namespace package": Small(
        "python3", {"pyproject.toml": toml(), "src/corp/shop/__init__.py": CODE, **python("corp.shop")}
    ),
    "hatch": Small("python3", {"pyproject.toml": toml(build=HATCH), "src/shop/__init__.py": CODE, **python()}),
    "poetry-core": Small("python3", {"pyproject.toml": toml(build=POETRY), "src/shop/__init__.py": CODE, **python()}),
    "pdm-backend": Small("python3", {"pyproject.toml": toml(build=PDM), "src/shop/__init__.py": CODE, **python()}),
    "uv_build": Small("python3", {"pyproject.toml": toml(build=UV), "src/shop/__init__.py": CODE, **python()}),
    "tox": Small(
        "python3",
        {
            "setup.py": "from setuptools import setup\nsetup(name='shop', py_modules=['shop'])\n",
            "tox.ini": "[testenv]\ndeps = pytest\ncommands = pytest\n",
            "shop.py": CODE,
            **python(),
        },
    ),
    "uv": Small(
        "uv", {"pyproject.toml": toml(DEV, HATCH), "src/shop/__init__.py": CODE, **python()}, lock="uv lock -q"
    ),
    "poetry": Small(
        "poetry",
        {"pyproject.toml": toml(f"[tool.poetry]\n{POETRY_DEV}", POETRY), "shop/__init__.py": CODE, **python()},
        lock="poetry lock",
    ),
    "pdm": Small(
        "pdm", {"pyproject.toml": toml(PDM_DEV, PDM), "src/shop/__init__.py": CODE, **python()}, lock="pdm lock -q"
    ),
    "uv workspace": Small(
        "uv",
        {
            "pyproject.toml": '[project]\nname = "all"\nversion = "1"\nrequires-python = ">=3.11"\n'
            f'dependencies = ["shop"]\n{DEV}[tool.uv.workspace]\nmembers = ["packages/*"]\n'
            f"[tool.uv.sources]\nshop = {{ workspace = true }}\n",
            "packages/shop/pyproject.toml": toml(build=HATCH),
            "packages/shop/src/shop/__init__.py": CODE,
            **python(),
        },
        lock="uv lock -q",
    ),
    "poetry packages from": Small(
        "poetry",
        {
            "pyproject.toml": toml(
                f'[tool.poetry]\npackages = [{{include = "shop", from = "lib"}}]\n{POETRY_DEV}', POETRY
            ),
            "lib/shop/__init__.py": CODE,
            **python(),
        },
        lock="poetry lock",
    ),
    "nox": Small(
        "python3",
        {
            "setup.py": "from setuptools import setup\n"
            "setup(name='shop', package_dir={'': 'lib'}, py_modules=['shop'])\n",
            "noxfile.py": "import nox\n\n\n@nox.session\ndef tests(session):\n    session.install('.', 'pytest')\n"
            "    session.run('pytest')\n",
            "lib/shop.py": CODE,
            **python(),
        },
    ),
    "npm": Small("npm", {"package.json": node(), "price.js": CJS, "test.js": ASSERT}),
    "npm workspaces": Small(
        "npm",
        {
            "package.json": node("npm test --workspaces", workspaces=["packages/*"]),
            "packages/base/package.json": json.dumps({"name": "base", "version": "1.0.0", "scripts": {"test": "true"}}),
            "packages/base/index.js": CJS,
            "packages/app/package.json": json.dumps(
                {"name": "app", "version": "1.0.0", "scripts": {"test": "node t.js"}, "dependencies": {"base": "*"}}
            ),
            "packages/app/price.js": "exports.price = require('base').price\n",
            "packages/app/t.js": ASSERT,
        },
        lock="npm install --package-lock-only --silent",
    ),
    "pnpm": Small(
        "pnpm",
        {"package.json": node(dependencies={"ms": "2.1.3"}), "price.js": CJS, "test.js": f"require('ms')\n{ASSERT}"},
        lock="pnpm install --lockfile-only --silent",
    ),
    "pnpm workspace": Small(
        "pnpm",
        {
            "package.json": node("pnpm -r test", private=True),
            "pnpm-workspace.yaml": "packages:\n  - packages/*\n",
            "packages/base/package.json": json.dumps({"name": "base", "version": "1.0.0"}),
            "packages/base/index.js": CJS,
            "packages/app/package.json": json.dumps(
                {
                    "name": "app",
                    "version": "1.0.0",
                    "scripts": {"test": "node t.js"},
                    "dependencies": {"base": "workspace:*"},
                }
            ),
            "packages/app/price.js": "exports.price = require('base').price\n",
            "packages/app/t.js": ASSERT,
        },
        lock="pnpm install --lockfile-only --silent",
    ),
    "yarn workspaces": Small(
        "yarn",
        {
            "package.json": node("yarn workspace app test", private=True, workspaces=["packages/*"]),
            "packages/base/package.json": json.dumps({"name": "base", "version": "1.0.0"}),
            "packages/base/index.js": CJS,
            "packages/app/package.json": json.dumps(
                {"name": "app", "version": "1.0.0", "scripts": {"test": "node t.js"}, "dependencies": {"base": "1.0.0"}}
            ),
            "packages/app/price.js": "exports.price = require('base').price\n",
            "packages/app/t.js": ASSERT,
        },
        lock="yarn install --silent && rm -rf node_modules",
    ),
    "npm, built by setup": Small(
        "npm",
        {
            "package.json": json.dumps(
                {
                    "name": "shop",
                    "version": "1.0.0",
                    "devDependencies": {"ms": "2.1.3"},
                    "scripts": {"prepare": "mkdir -p dist && cp src/price.js dist/price.js", "test": "node test.js"},
                }
            ),
            ".gitignore": "dist\nnode_modules\n",
            "src/price.js": CJS,
            "test.js": ASSERT.replace("./price", "./dist/price"),
        },
    ),
    "yarn": Small(
        "yarn",
        {"package.json": node(dependencies={"ms": "2.1.3"}), "price.js": CJS, "test.js": f"require('ms')\n{ASSERT}"},
        lock="yarn install --silent && rm -rf node_modules",
    ),
    "vitest": Small(
        "npm",
        {
            "package.json": node("", type="module", devDependencies={"vitest": "^2"}),
            "price.js": ESM,
            "price.test.js": VITEST,
        },
    ),
    "jest": Small(
        "npm",
        {
            "package.json": node("jest", devDependencies={"jest": "^29"}),
            "price.js": CJS,
            "price.test.js": "test('it', () => expect(require('./price').price()).toBe(7))",
        },
    ),
    "ava": Small(
        "npm", {"package.json": node("", type="module", devDependencies={"ava": "^5"}), "price.js": ESM, "test.js": AVA}
    ),
    "tsc": Small(
        "npm",
        {
            "package.json": json.dumps(
                {"name": "shop", "scripts": {"typecheck": "tsc"}, "devDependencies": {"typescript": "^5"}}
            ),
            "tsconfig.json": '{"compilerOptions": {"noEmit": true, "strict": true}, "include": ["src"]}',
            "src/price.ts": "export const price = (): number => 7\n",
        },
    ),
    "tsd": Small(
        "npm",
        {
            "package.json": node("tsd", types="index.d.ts", devDependencies={"tsd": "^0.31"}),
            "index.js": "module.exports = () => 7;\n",
            "index.d.ts": "declare function price(): number;\nexport = price;\n",
            "index.test-d.ts": "import { expectType } from 'tsd';\nimport price = require('.');\n"
            "expectType<number>(price());\n",
        },
    ),
    "go": Small(
        "go",
        {
            "go.mod": "module example.com/shop\n\ngo 1.19\n",
            "price.go": "package shop\n\nfunc Price() int { return 7 }\n",
            "price_test.go": 'package shop\n\nimport "testing"\n\nfunc TestPrice(t *testing.T) {\n\tif Price() != 7 {\n'
            '\t\tt.Fatal("wrong")\n\t}\n}\n',
        },
    ),
    "rust with inline tests": Small(
        "cargo",
        {
            "Cargo.toml": '[package]\nname = "shop"\nversion = "1.0.0"\nedition = "2021"\n',
            "src/lib.rs": "pub fn price() -> u32 { 7 }\n\n#[test]\nfn it() { assert_eq!(price(), 7); }\n",
        },
    ),
    "rust workspace": Small(
        "cargo",
        {
            "Cargo.toml": '[workspace]\nmembers = ["base", "app"]\nresolver = "2"\n',
            "base/Cargo.toml": '[package]\nname = "base"\nversion = "1.0.0"\nedition = "2021"\n',
            "base/src/lib.rs": "pub fn price() -> u32 { 7 }\n",
            "app/Cargo.toml": '[package]\nname = "app"\nversion = "1.0.0"\nedition = "2021"\n\n'
            '[dependencies]\nbase = { path = "../base" }\n',
            "app/src/lib.rs": "#[test]\nfn it() { assert_eq!(base::price(), 7); }\n",
        },
    ),
    "php": Small(
        "php composer",
        {
            "composer.json": json.dumps({"name": "a/shop", "scripts": {"test": "php tests/run.php"}}),
            "src/price.php": "<?php\nfunction price() { return 7; }\n",
            "tests/run.php": "<?php\nrequire __DIR__ . '/../src/price.php';\nexit(price() === 7 ? 0 : 1);\n",
        },
    ),
    "phpunit": Small(
        "php composer",
        {
            "composer.json": json.dumps({"name": "a/shop", "require-dev": {"phpunit/phpunit": "^9"}}),
            "phpunit.xml.dist": '<phpunit><testsuites><testsuite name="a"><directory>tests</directory></testsuite>'
            "</testsuites></phpunit>",
            "src/price.php": "<?php\nfunction price() { return 7; }\n",
            "tests/PriceTest.php": "<?php\nrequire_once __DIR__ . '/../src/price.php';\n"
            "class PriceTest extends PHPUnit\\Framework\\TestCase {\n"
            "  function testIt() { $this->assertSame(7, price()); }\n}\n",
        },
        index="repo.packagist.org",
    ),
    "ruby": Small(
        "bundle",
        {
            "Gemfile": 'source "https://rubygems.org"\ngem "rake"\ngem "minitest"\n',
            "Rakefile": 'require "rake/testtask"\nRake::TestTask.new\n',
            "lib/price.rb": "def price = 7\n",
            "test/test_price.rb": 'require "minitest/autorun"\nrequire "price"\nclass TestPrice < Minitest::Test\n'
            "  def test_it = assert_equal(7, price)\nend\n",
        },
        index="rubygems.org",
    ),
    "maven": Small(
        "mvn",
        {
            "pom.xml": "<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>shop</artifactId>"
            "<version>1</version><properties><maven.compiler.source>11</maven.compiler.source>"
            "<maven.compiler.target>11</maven.compiler.target></properties><dependencies><dependency>"
            "<groupId>junit</groupId><artifactId>junit</artifactId><version>4.13.2</version><scope>test</scope>"
            "</dependency></dependencies></project>",
            **JAVA,
        },
        index="repo.maven.apache.org",
    ),
    "gradle": Small(
        "gradle",
        {
            "build.gradle": "apply plugin: 'java'\nrepositories { mavenCentral() }\n"
            "dependencies { testImplementation 'junit:junit:4.13.2' }\n",
            **JAVA,
        },
        index="repo.maven.apache.org",
    ),
    "kotlin": Small(
        "gradle",
        {
            "build.gradle.kts": 'plugins { kotlin("jvm") version "1.9.24" }\nrepositories { mavenCentral() }\n'
            'dependencies { testImplementation(kotlin("test")) }\n',
            "src/main/kotlin/Price.kt": "fun price() = 7\n",
            "src/test/kotlin/PriceTest.kt": "import kotlin.test.*\n\nclass PriceTest {\n"
            "    @Test fun it() = assertEquals(7, price())\n}\n",
        },
        index="plugins.gradle.org",
    ),
    "dotnet": Small(
        "dotnet",
        {
            "shop.csproj": '<Project Sdk="Microsoft.NET.Sdk"><PropertyGroup><TargetFramework>net8.0</TargetFramework>'
            '</PropertyGroup><ItemGroup><PackageReference Include="Microsoft.NET.Test.Sdk" Version="17.10.0" />'
            '<PackageReference Include="xunit" Version="2.8.1" />'
            '<PackageReference Include="xunit.runner.visualstudio" Version="2.8.1" /></ItemGroup></Project>',
            "Price.cs": "public static class Shop { public static int Price() => 7; }\n",
            "PriceTests.cs": "public class PriceTests { [Xunit.Fact] public void It() => "
            "Xunit.Assert.Equal(7, Shop.Price()); }\n",
        },
        index="api.nuget.org",
    ),
    "make": Small(
        "make cc",
        {
            "Makefile": "test: shop\n\t./shop\nshop: price.c\n\tcc -o shop price.c\n",
            "price.c": "int main(void) { return 0; }\n",
        },
    ),
    "cmake": Small(
        "cmake ctest cc",
        {
            "CMakeLists.txt": "cmake_minimum_required(VERSION 3.5)\nproject(shop C)\nadd_executable(shop price.c)\n"
            "enable_testing()\nadd_test(NAME it COMMAND shop)\n",
            "price.c": "int main(void) { return 0; }\n",
        },
    ),
}


def reachable(host: str) -> bool:
    try:
        socket.create_connection((host, 443), timeout=5).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Squad]:
    with squad(tmp_path_factory.mktemp("person"), settings=WITH_TRIAL) as one:
        yield one


def tried(name: str, person: Squad, root: Path, settings: str = "") -> tuple[Project, TrialPage]:
    small = PROJECTS[name]
    if missing := [tool for tool in small.tools.split() if shutil.which(tool) is None]:
        pytest.skip(f"cannot be tried here: {missing[0]} is not installed")
    if small.index and not reachable(small.index):
        pytest.skip(f"cannot be tried here: {small.index} cannot be reached")
    made = Repository(root, settings)
    made.git("rm", "--quiet", "-f", "check.sh", "README.txt", *([] if settings else ["legion.toml"]))
    made.write(dict(small.files))
    if small.lock:
        words = ["sh", "-c", small.lock]
        made_lock = subprocess.run(
            words, cwd=made.root, env={**os.environ, "CI": "true"}, capture_output=True, text=True
        )
        if made_lock.returncode:
            said = (made_lock.stderr or made_lock.stdout).strip()[-200:]
            pytest.skip(f"cannot be tried here: `{small.lock}` itself fails, without Legion: {said}")
    made.commit("source", {})
    project = person.init(made)
    if settings:
        project.trust()
    found = person.client.try_checks(TryChecks(cwd=project.cwd))
    while found.state in ("due", "running"):
        found = person.client.trial(project.cwd, found.number, 20.0)
    return project, found


@pytest.mark.parametrize("name", PROJECTS)
def test_the_guess_prepares_passes_and_sees_the_code(name: str, person: Squad, tmp_path: Path):
    _, found = tried(name, person, tmp_path / "shop")
    assert (found.state, found.sees) == ("done", "yes"), found.lines
    assert found.doubts == []
