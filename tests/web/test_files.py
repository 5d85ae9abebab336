"""The files of the page: libraries as published, nothing from elsewhere, small."""

from __future__ import annotations

import gzip
import hashlib
import re
import tomllib

from legion.api.page import PageFiles
from legion.tui.keys import BY_ID, shown_key
from legion.web import STATIC, first_view

NOT_IN_A_BROWSER = {
    *("everywhere.quit", "everywhere.start_daemon", "everywhere.light", "everywhere.next_pane"),
    *("everywhere.previous_pane", "list.page_down", "list.page_up", "list.scroll_down", "list.scroll_up"),
    *("squad.narrower", "squad.wider", "squad.next_agent", "squad.previous_agent", "squad.delegate"),
    *("models.complete", "models.forget", "machines.clean", "machines.drain_machine"),
    *("everywhere.suspend_process", "everywhere.init"),
    *("form.next_field", "form.previous_field", "form.choose", "everywhere.plans", "everywhere.new_plan"),
    "inbox.diff",  # there the change is a link of the question
    *(
        "plans.approve",
        "plans.mark",
        "tickets.mark",
        "plans.edit",
        "plans.reject",
        "plans.retry_plan",
        "plans.drop_plan",
    ),
}
"""The browser has these keys itself, or the page has a control for it."""
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


def content(name: str) -> bytes:
    file = PageFiles().get(name)
    assert file is not None, name
    return file.content


def test_one_place_hears_keys_and_a_box_takes_the_focus_by_itself():
    """Browsers ignore `autofocus` once something has the focus; a second listener would act while text is written."""
    for path in (STATIC / "app").rglob("*.js"):
        text = path.read_text()
        assert "autofocus" not in text, path
        if path.name not in ("main.js", "parts.js"):
            assert not re.findall(r'addEventListener\("key', text), path


def test_only_the_frame_asks_the_address_and_only_drafts_keep_what_is_typed():
    """A view knows its place from the frame: the address is ahead of what is shown."""
    frame = {"main.js", "keys.js", "early.js", "press.js"}
    for path in (STATIC / "app").rglob("*.js"):
        text = path.read_text()
        if path.name not in frame:
            assert not re.findall(r"location\.hash(?! = )", text), path
        if path.name not in ("api.js", "early.js", "state.js", "terminal.js", "writing.js"):
            assert not re.findall(r"(local|session)Storage", text), path
        if path.parent.name == "views" and path.name != "board.js":
            assert not re.findall(r"\bstored?\(", text), path


def test_the_first_view_is_small():
    shell = set(re.findall(r'"(/[^"]*)"', (STATIC / "sw.js").read_text().partition("];")[0])) - {"/"}
    first = [content(name.removeprefix("/web/")) for name in shell] + [content("index.html")]
    assert sum(len(gzip.compress(one, 9)) for one in first) < MOST_FIRST_VIEW
    assert f"/web/{first_view.JOINED}" in shell


def test_modules_of_the_first_view_are_joined_and_export_the_same_names_by_themselves():
    joined = content(first_view.JOINED).decode()
    assert not re.findall(r"^import\b|[;}]import[ {]|^export (?!\{ modules)", joined, re.MULTILINE)
    assert content("app/lib.js").decode().splitlines()[1:] == [
        'const module = modules["app/lib.js"];',
        (
            "export const { useContext, useEffect, useLayoutEffect, useMemo, useRef, useState, computed, signal, "
            "createContext, render, html } = module;"
        ),
    ]
    assert b"export default module.default;" in content("vendor/htm.mjs")


def test_the_keys_are_those_of_the_terminal_ui():
    rows = re.findall(
        r'^  \["(\w+)", "(\w+)", "([^"]+)", "[^"]+"\],$', (STATIC / "app/keys.js").read_text(), re.MULTILINE
    )
    keys = {f"{place}.{action}": key for place, action, key in rows}
    assert set(BY_ID) - set(keys) == NOT_IN_A_BROWSER
    assert {name for name, key in keys.items() if key not in map(shown_key, BY_ID[name].keys)} == set()
