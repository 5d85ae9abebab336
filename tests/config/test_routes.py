"""routes.toml: what is saved is what is loaded, and a bad file is told about in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.config.files.routes import RouteConfig, RouteTarget, load, save, target
from legion.domain.errors import BadInput


def test_no_file_is_no_route(tmp_path: Path):
    assert load(tmp_path / "routes.toml") == ()


def test_what_is_saved_is_loaded_again_in_the_same_order(tmp_path: Path):
    routes = (
        RouteConfig(model="claude-haiku-*", to=(RouteTarget(provider="ollama", model="qwen3"),)),
        RouteConfig(model="*", agent="7*", role="worker", team="a team", most_usd=2.5, to=(target("one"),)),
        RouteConfig(model="*", most_usd=0.0, to=(target("one"),)),
        RouteConfig(model="ü*", provider="one", to=(target("openrouter/anthropic/claude-sonnet-4.5"), target("one"))),
    )
    save(routes, tmp_path / "new" / "routes.toml")
    assert load(tmp_path / "new" / "routes.toml") == routes


@pytest.mark.parametrize("words", ["", "/model", "provider/"])
def test_a_place_to_ask_has_a_provider(words):
    with pytest.raises(BadInput, match="PROVIDER or PROVIDER/MODEL"):
        target(words)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[route\n", "cannot be read"),
        ("[other]\n", "nothing but"),
        ("route = 7\n", "nothing but"),
        ('[[route]]\nmodel = "x"\n', "fix it"),
        ('[[route]]\nmodel = "x"\nto = []\n', "fix it"),
        ('[[route]]\nmodel = "x"\nto = [7]\n', "fix it"),
        ('[[route]]\nto = ["x"]\n', "fix it"),
        ('[[route]]\nmodel = "x"\nto = ["x"]\ncolour = "red"\n', "fix it"),
        ('[[route]]\nmodel = "x"\nto = ["x"]\nteam = 7\n', "fix it"),
        ('[[route]]\nmodel = "x"\nto = ["x"]\nmost_usd = "much"\n', "fix it"),
        ('[[route]]\nmodel = "x"\nto = ["x"]\nmost_usd = -1\n', "fix it"),
        ('[[route]]\nmodel = "x"\nto = ["x"]\nmost_usd = inf\n', "fix it"),
    ],
)
def test_a_bad_file_is_told_about_in_one_sentence(tmp_path: Path, text, said):
    file = tmp_path / "routes.toml"
    file.write_text(text)
    with pytest.raises(BadInput, match=said):
        load(file)
