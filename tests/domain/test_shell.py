"""Which variables of the person's shell count."""

from __future__ import annotations

from legion.domain import shell


def test_only_listed_variables_count():
    given = {
        "PATH": "/usr/bin",
        "HTTPS_PROXY": "http://proxy:3128",
        "NVM_DIR": "/me/.nvm",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    assert shell.chosen(given, "/me/shop") == {name: given[name] for name in ("PATH", "HTTPS_PROXY", "NVM_DIR")}
    assert not {name for name in shell.NAMES if "TOKEN" in name or "KEY" in name or "INDEX" in name}


def test_folders_of_path_in_the_repository_are_left_out():
    """A virtual environment of the checkout would be found by the checks of every tree."""
    inside = "/me/shop/.venv/bin:/me//shop/./bin:/usr/../me/shop/bin:node_modules/.bin"
    path = f"{inside}:/me/.nvm/v20/bin::/me/shop-tools/bin:/usr/bin:/usr/bin"
    assert shell.chosen({"PATH": path}, "/me/shop") == {"PATH": "/me/.nvm/v20/bin:/me/shop-tools/bin:/usr/bin"}


def test_values_are_one_short_line():
    assert shell.chosen({"PATH": "/a\n/b", "HTTP_PROXY": "x" * 20_000, "JAVA_HOME": ""}, "/r") == {}


def test_a_proxy_is_not_used_for_this_machine():
    got = shell.for_programs({"https_proxy": "http://proxy", "NO_PROXY": "corp.example,localhost"})
    assert got["no_proxy"] == got["NO_PROXY"] == "corp.example,localhost,127.0.0.1,::1"
    assert shell.for_programs({"PATH": "/usr/bin"}) == {"PATH": "/usr/bin"}


def test_a_variable_that_one_of_both_lacks_is_a_difference():
    assert shell.different({"PATH": "/a", "HTTP_PROXY": "x"}, {"PATH": "/b"}) == ("PATH", "HTTP_PROXY")
    assert shell.different({"PATH": "/a"}, {"PATH": "/a"}) == ()
