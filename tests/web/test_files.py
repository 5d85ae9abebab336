"""The files of the page: libraries as published, nothing from elsewhere, small."""

from __future__ import annotations

import gzip
import hashlib
import re
import tomllib

from legion.web import STATIC

VENDOR = STATIC / "vendor"
MOST_FIRST_VIEW = 60_000


def test_every_library_is_listed_with_version_licence_and_hash():
    listed = tomllib.loads((STATIC.parent / "vendor.toml").read_text())["library"]
    hashes = {one["file"]: one["sha256"] for one in listed}
    files = [path for path in VENDOR.iterdir() if path.name != "LICENSES.txt"]
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    assert found == hashes
    notices = (VENDOR / "LICENSES.txt").read_text()
    for one in listed:
        assert one["licence"] in ("MIT", "Apache-2.0")
        assert f"{one['package']}@{one['version']}" in notices


def test_no_file_names_another_address():
    for path in STATIC.rglob("*"):
        if path.suffix in (".js", ".css", ".html", ".webmanifest"):
            # The notices of a library name its authors' pages.
            loads = r"url\(|@import" if path.parent == VENDOR else r"https?://|//cdn|@import"
            assert not re.findall(loads, path.read_text()), path


def test_nothing_becomes_html_or_code():
    for path in [*(STATIC / "app").rglob("*.js"), STATIC / "sw.js"]:
        assert not re.findall(
            r"innerHTML|outerHTML|insertAdjacent|dangerously|document\.write|eval\(|new Function", path.read_text()
        ), path


def test_the_first_view_is_small():
    shell = set(re.findall(r'"(/[^"]*)"', (STATIC / "sw.js").read_text().partition("];")[0])) - {"/"}
    first = [STATIC / name.removeprefix("/web/") for name in shell] + [STATIC / "index.html"]
    assert sum(len(gzip.compress(path.read_bytes(), 9)) for path in first) < MOST_FIRST_VIEW
    assert STATIC / "app/main.js" in first
