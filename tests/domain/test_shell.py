"""Which variables of the person's shell count."""

from __future__ import annotations

import pytest

from legion.domain import projects


def test_only_listed_variables_count():
    given = {
        "PATH": "/usr/bin",
        "HTTPS_PROXY": "http://proxy:3128",
        "NVM_DIR": "/me/.nvm",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    assert projects.chosen(given) == {name: given[name] for name in ("PATH", "HTTPS_PROXY", "NVM_DIR")}
    assert not {name for name in projects.NAMES if "TOKEN" in name or "KEY" in name or "INDEX" in name}


def test_values_are_one_short_line():
    assert projects.chosen({"PATH": "/a\n/b", "HTTP_PROXY": "x" * 20_000, "JAVA_HOME": ""}) == {}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("http://me:secret@proxy:3128", "http://proxy:3128"),
        ("SOCKS5h://me:p@ss/w?rd@[::1]:1080/", "SOCKS5h://[::1]:1080/"),
        ("me:secret@proxy", "proxy"),
        ("http://proxy:3128", "http://proxy:3128"),
    ],
)
def test_a_proxy_counts_without_user_and_password(given: str, kept: str):
    variables = {"HTTPS_PROXY": given, "all_proxy": given}
    assert projects.chosen(variables) == {"HTTPS_PROXY": kept, "all_proxy": kept}
    assert projects.with_password(variables) == (("HTTPS_PROXY", "all_proxy") if given != kept else ())


def test_a_proxy_is_not_used_for_this_machine():
    got = projects.for_programs({"https_proxy": "http://proxy", "NO_PROXY": "corp.example,localhost"})
    assert got["no_proxy"] == got["NO_PROXY"] == "corp.example,localhost,127.0.0.1,::1"
    assert projects.for_programs({"PATH": "/usr/bin"}) == {"PATH": "/usr/bin"}


def test_a_variable_that_one_of_both_lacks_is_a_difference():
    assert projects.different({"PATH": "/a", "HTTP_PROXY": "x"}, {"PATH": "/b"}) == ("PATH", "HTTP_PROXY")
    assert projects.different({"PATH": "/a"}, {"PATH": "/a"}) == ()
