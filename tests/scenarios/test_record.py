"""A run of the real Claude Code is recorded, and played again for nothing: the same words, the same change."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.models import KEY, Company, company
from tests.support.stand_in import build

pytestmark = pytest.mark.timeout(300)

SECRET = "sk-ant-api03-0123456789abcdefghij"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("record")) as one:
        one.script(
            "author",
            """
            [[step]]
            think = "Somebody else knows what a poem is, {cwd} does not."
            say = "I ask for a line."
            call = {tool = "Agent", input = {description = "a line", subagent_type = "general-purpose", \
            prompt = "rehearsal: helper. Write a line."}}

            [[step]]
            say = "I write it down, and {title} stays as it is."
            usage = {input = 1200, output = 34, cache_read = 56, cache_write = 7}
            call = {tool = "Write", input = {file_path = "{cwd}/poem.txt", content = "roses {red} \\u2603\\n"}}

            [[step]]
            calls = [
                {tool = "Bash", input = {command = "cat poem.txt; echo $ANTHROPIC_AUTH_TOKEN"}},
                {tool = "Bash", input = {command = "echo SECRET >> poem.txt"}},
            ]

            [[step]]
            say = "Done."
            """.replace("SECRET", SECRET),
        )
        one.script(
            "plain", '[[step]]\ncall = {tool = "Bash", input = {command = "echo > plain"}}\n[[step]]\nsay = "Done."'
        )
        one.script("helper", '[[step]]\nsay = "roses are red"\n')
        yield one


def recorded(here: Company, file: Path) -> dict[str, str]:
    assert "are recorded" in here.told("record", "on")
    ticket = here.dispatch("author")
    here.project.until(ticket, "done")
    assert "stay" in here.told("record", "off")
    said = here.told("record", str(ticket), "-o", str(file))
    names = [file.name, f"{file.stem}-agent-1.toml"]
    assert [Path(line.removeprefix("Written: ")).name for line in said.splitlines()] == names
    return {name: (file.parent / name).read_text() for name in names}


def git(place: Path, *words: str) -> str:
    return subprocess.run(
        ["git", f"--git-dir={place}", *words], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_recorded_run_is_played_again_with_the_same_words_and_the_same_change(here: Company, tmp_path: Path):
    texts = recorded(here, tmp_path / "author-again.toml")
    cassette = tomllib.loads(texts["author-again.toml"])
    assert [len(step.get("calls", [])) for step in cassette["step"]] == [1, 1, 2, 0]
    assert cassette["step"][1]["calls"][0]["input"] == {
        "file_path": "{cwd}/poem.txt",
        "content": "roses {red} \N{SNOWMAN}\n",
    }
    assert cassette["step"][1]["usage"] == {"input": 1200, "output": 34, "cache_read": 56, "cache_write": 7}
    assert cassette["step"][0]["think"] == "Somebody else knows what a poem is, {cwd} does not."
    assert cassette["ticket"]["title"] == "play author"
    everything = "".join(texts.values())
    for private in (KEY, SECRET, "legion-", str(here.squad.folder), str(Path.home())):
        assert private not in everything.replace("`legion", "")

    played = here.cli("rehearse", str(tmp_path / "author-again.toml"), "--json", "--keep")
    assert played.returncode == 0, played.stdout + played.stderr
    told = json.loads(played.stdout)
    assert [one["state"] for one in told["tickets"]] == ["done"]
    kept = Path(told["folder"])
    lines = [json.loads(line) for line in (kept / "rehearsal.jsonl").read_text().splitlines()]
    steps = [(line["script"], line["step"]) for line in lines if line["script"]]
    assert sorted(steps) == [*(("author-again", step) for step in (1, 2, 3, 4)), ("author-again-agent-1", 1)]
    assert not [line for line in lines if line["kind"] == "unexpected"]
    (hub,) = kept.glob("data/projects/*/hub.git")
    ours = next(here.squad.folder.glob("data/projects/*/hub.git"))
    trees = [git(place, "show", "refs/legion/target:poem.txt") for place in (hub, ours)]
    assert trees[0] == trees[1].replace(SECRET, "REDACTED")
    shutil.rmtree(kept)


def test_what_was_not_recorded_is_said_and_nothing_is_written_over(here: Company, tmp_path: Path):
    with here.using(build.program()):
        ticket = here.dispatch("plain")
        here.project.until(ticket, "done")
    refused = here.cli("record", str(ticket), "-o", str(tmp_path / "x.toml"))
    assert (refused.returncode, refused.stderr.count("\n")) == (3, 1)
    assert "`legion plan record on` records new runs" in refused.stderr
    assert here.cli("record", "maybe").returncode == 2
    assert here.cli("record", "on", "-o", "x.toml").returncode == 2
    assert here.cli("record", "7", "-o", "x.json").returncode == 2
