"""The plugin's files and the person's settings: nothing of theirs is lost, and removing takes everything back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from legion.cli.plugin import place as places
from legion.cli.plugin.place import LegionProgram, PluginPlace, commands, plugin_files, with_line, without_line
from legion.wire.errors import BadInput

PROGRAM = LegionProgram(argv=("/opt/my legion/legion", "--data-dir", "/d"))


@pytest.fixture
def place(tmp_path: Path) -> PluginPlace:
    folder = tmp_path / ".claude"
    return PluginPlace(name="user", folder=folder, settings=folder / "settings.json", program=PROGRAM)


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_every_placeholder_is_filled_and_every_json_file_can_be_read():
    files = plugin_files(PROGRAM)
    assert not [path for path, text in files.items() if "{{" in text]
    assert json.loads(files[".mcp.json"])["mcpServers"]["legion"] == {
        "command": "/opt/my legion/legion",
        "args": ["--data-dir", "/d", "mcp", "--stdio"],
    }
    hooks = json.loads(files["hooks/hooks.json"])["hooks"]
    assert hooks["UserPromptSubmit"][0]["hooks"][0]["command"] == "'/opt/my legion/legion' --data-dir /d plugin news"


SETTINGS = {
    "none": None,
    "empty": "",
    "plain": '{ "theme":"dark","hooks": {"Stop": []} }',
    "unicode": '{"name": "Zoë"}\n',
    "own-line": '{"statusLine": {"type": "command", "command": "date"}}',
    "broken": "{ // mine\n}",
    "list": "[]",
}


@pytest.mark.parametrize("text", SETTINGS.values(), ids=SETTINGS.keys())
def test_installing_twice_and_removing_leaves_the_settings_as_they_were_to_the_byte(place: PluginPlace, text):
    place.folder.mkdir()
    (place.folder / "CLAUDE.md").write_text("mine\n")
    if text is not None:
        place.settings.write_text(text)
    before = everything(place.folder)
    first, again = places.install(place), places.install(place)
    assert first == again
    now = json.loads(place.settings.read_text()) if "not changed" not in "".join(first) else {}
    kept = json.loads(text) if text and text.startswith('{ "') else {}
    assert {name: value for name, value in now.items() if name != "statusLine"}.keys() >= kept.keys()
    assert places.remove(place) == []
    assert everything(place.folder) == before
    with pytest.raises(BadInput, match="is not installed"):
        places.remove(place)


@pytest.mark.parametrize("text", [None, SETTINGS["own-line"]], ids=["none", "own-line"])
def test_a_dry_run_lists_exactly_the_files_that_are_written(place: PluginPlace, text):
    if text is not None:
        place.split.parent.mkdir(parents=True)
        place.split.write_text("mine\n")
        place.settings.write_text(text)
    before = everything(place.folder)
    listed = {str(path.relative_to(place.folder)) for path in places.would_write(place)}
    assert everything(place.folder) == before
    places.install(place)
    assert everything(place.folder).keys() - before.keys() == listed


def test_the_list_names_every_command_and_the_leader_with_one_line_each():
    found = commands(PROGRAM)
    assert {"/legion:plan", "/legion:split-tickets", "/legion:coordinator", "agent legion:leader"} < found.keys()
    described = [path for path in plugin_files(PROGRAM) if path.startswith(("commands/", "agents/"))]
    assert len(found) == len(described)


def test_settings_that_changed_since_lose_our_line_and_nothing_else(place: PluginPlace):
    places.install(place)
    settings = json.loads(place.settings.read_text())
    place.settings.write_text(json.dumps({**settings, "theme": "light"}))
    (note,) = places.remove(place)
    assert "only the status line was removed" in note
    assert json.loads(place.settings.read_text()) == {"theme": "light"}


def test_a_status_line_that_the_person_set_later_stays(place: PluginPlace):
    places.install(place)
    place.settings.write_text('{"statusLine": {"type": "command", "command": "date"}}')
    assert places.remove(place) == []
    assert json.loads(place.settings.read_text())["statusLine"]["command"] == "date"


def test_files_of_the_person_with_our_names_stay(place: PluginPlace):
    place.split.parent.mkdir(parents=True)
    place.split.write_text("mine\n")
    (note,) = places.install(place)
    assert "is yours and stays" in note
    places.remove(place)
    assert place.split.read_text() == "mine\n"
    place.plugin.mkdir(parents=True)
    with pytest.raises(BadInput, match="is there and not ours"):
        places.install(place)


def test_a_settings_file_that_is_a_link_stays_a_link(place: PluginPlace, tmp_path: Path):
    place.folder.mkdir()
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    place.settings.symlink_to(real)
    places.install(place)
    assert place.settings.is_symlink()
    assert "statusLine" in json.loads(real.read_text())
    places.remove(place)
    assert real.read_text() == "{}"


def test_our_line_is_found_only_where_it_is_ours():
    ours, _ = with_line("{}", "legion plugin line")
    assert ours is not None
    assert without_line(ours, "legion plugin line") == "{}\n"
    assert without_line(ours, "other") is None
    assert with_line(ours, "legion plugin line") == (None, "")
