"""providers.toml: what is saved is what is loaded, in its order, and a bad file is told about in one sentence."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.config.base.source import HIDDEN
from legion.config.files.providers import ProviderAuth, ProviderConfig, load, save
from legion.domain.errors import BadInput, NotAllowed


def test_no_file_is_no_provider(tmp_path: Path):
    assert load(tmp_path / "providers.toml") == {}


def test_what_is_saved_is_private_and_says_that_it_is_written_anew(tmp_path: Path):
    file = tmp_path / "new" / "providers.toml"
    save({"one": ProviderConfig(url="http://x")}, file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "rewrite this file" in file.read_text()


PLAIN = st.text(st.characters(exclude_categories=["Cs"]), max_size=40).filter(lambda text: not HIDDEN.search(text))
PROVIDERS = st.builds(
    ProviderConfig,
    url=PLAIN.map(lambda text: f"https://{text}"),
    auth=st.sampled_from(ProviderAuth),
    key_file=PLAIN,
    key_env=PLAIN,
    key_command=PLAIN,
    key_keyring=st.sampled_from(["", "yes"]),
)


@given(st.dictionaries(st.from_regex(r"[a-z0-9][a-z0-9_-]{0,10}", fullmatch=True), PROVIDERS, max_size=3))
def test_what_is_saved_is_loaded_again_in_the_same_order(tmp_path_factory: pytest.TempPathFactory, providers):
    file = tmp_path_factory.mktemp("config") / "providers.toml"
    save(providers, file)
    assert list(load(file).items()) == list(providers.items())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[one]\n", "lacks `url`"),
        ("one = 1\n", "must be a table"),
        ('[one]\nurl = "ftp://x"\n', "an http:// or https:// address"),
        ('[one]\nurl = "http://x"\nauth = "magic"\n', '"x-api-key", "bearer", "oauth" or "copilot"'),
        ('[one]\nurl = "http://x"\nkey = "sk-1"\n', "is not a setting"),
        ("[one\n", "not valid TOML"),
    ],
)
def test_a_bad_file_is_told_about_in_one_sentence(tmp_path: Path, text, said):
    file = tmp_path / "providers.toml"
    file.write_text(text)
    with pytest.raises(BadInput, match=said):
        load(file)


def test_what_could_not_be_read_again_is_not_written(tmp_path: Path):
    file = tmp_path / "providers.toml"
    with pytest.raises(BadInput):
        save({"one": ProviderConfig(url="http://x", key_file="a\x1b[2J")}, file)
    assert not file.exists()


def test_a_place_that_cannot_be_written_is_told_about(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(NotAllowed, match="make its folder writable"):
        save({}, tmp_path / "file" / "providers.toml")
