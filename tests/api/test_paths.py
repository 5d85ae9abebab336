"""No path is built from a request: the page's files are looked up in a table, by their exact names."""

from __future__ import annotations

import http.client
import urllib.parse
from pathlib import Path

import pytest

from legion.api.page import PageFiles
from legion.web import STATIC
from tests.api.serving import TOKEN, Served
from tests.support.attacks import Attacker, Door, attack

SECRET = "what only the person may read"
SUFFIXES = (".txt", ".js", ".pem", "")


def get(served: Served, target: str, host: str = "127.0.0.1") -> tuple[int, bytes]:
    """The target exactly as written: a client would tidy it up first."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    try:
        connection.putrequest("GET", target, skip_host=True)
        connection.putheader("Host", f"{host}:{served.port}")
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.fixture
def secrets(tmp_path: Path, served: Served) -> Path:
    """A folder with a file of each kind, and links to the daemon's token, as an agent can make them."""
    for suffix in SUFFIXES:
        (tmp_path / f"secret{suffix}").write_text(SECRET)
        (tmp_path / f"link{suffix}").symlink_to(served.board.data.token)
    (tmp_path / "folder").symlink_to(served.board.data.root)
    return tmp_path


SPELLINGS = {
    "absolute": "/web/{path}",
    "one slash more": "/web//{path}",
    "many slashes": "/web/////{path}",
    "escaped slashes": "/web/{escaped}",
    "dots": "/web/../../../../../../../../../../../../..{path}",
    "escaped dots": "/web/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e{path}",
    "twice escaped dots": "/web/%252e%252e/%252e%252e/%252e%252e/%252e%252e/%252e%252e{path}",
    "half escaped dots": "/web/.%2e/.%2e/.%2e/.%2e/.%2e/.%2e/.%2e/.%2e/.%2e{path}",
    "dots behind a folder": "/web/app/../../../../../../../../../../../..{path}",
    "backslashes": "/web/..\\..\\..\\..\\..{path}",
    "file scheme": "/web/file://{path}",
    "overlong dots": "/web/%c0%ae%c0%ae/%c0%ae%c0%ae/%c0%ae%c0%ae{path}",
    "semicolon": "/web/..;/..;/..;/..;{path}",
    "nul": "/web/{path}%00.js",
    "root": "/{path}",
    "worker": "/sw.js/{path}",
}


@attack(Attacker.AGENT, Door.PATHS)
@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", ["secret", "link", "folder/token"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_request_without_login_reads_a_file_of_the_person(
    served: Served, secrets: Path, spelling: str, name: str, suffix: str
):
    path = str(secrets / f"{name}{suffix}")
    target = SPELLINGS[spelling].format(path=path, escaped=urllib.parse.quote(path, safe=""))
    status, content = get(served, target)
    assert status in (400, 401, 404)
    assert SECRET.encode() not in content
    assert TOKEN.encode() not in content


@attack(Attacker.NETWORK, Door.PATHS)
@pytest.mark.parametrize(
    "target",
    [
        *("/web//etc/passwd", "/web/etc/passwd", "/web/%2fetc%2fpasswd", "/web/~/.ssh/id_rsa", "/web/"),
        *("/web/app", "/web/app/", "/web/vendor/", "/web/../vendor.toml", "/web/../__init__.py", "/web/vendor.toml"),
        *("/web/./app/main.js", "/web/app/./main.js", "/web/app//main.js", "/web/app/main.js/", "/web/APP/MAIN.JS"),
        *("/web/app/../app/main.js", "/web/app%2fmain.js/", "/web/app/main.js%00", "/web/app/main.js%20"),
        *("/web/index.html/..", "/web/sw.js;x", "/web/app\\main.js", "/web/app/main.js.map", "//web/app/main.js"),
        "/web/" + "a/" * 2000 + "x.js",
        "/web/" + "x" * 30_000 + ".js",
    ],
    ids=lambda target: target[:40],
)
def test_a_name_that_the_table_does_not_hold_is_not_found(served: Served, target: str):
    assert get(served, target)[0] in (400, 401, 404)


@attack(Attacker.NETWORK, Door.BOUNDS)
def test_other_spellings_of_a_file_take_no_memory(served: Served):
    files = PageFiles()
    before = len(files.names)
    for dots in range(1, 200):
        assert get(served, f"/web/{'./' * dots}vendor/xterm.mjs")[0] == 404
        assert files.get(f"{'./' * dots}vendor/xterm.mjs") is None
    assert len(files.names) == before


@attack(Attacker.AGENT, Door.PATHS)
def test_a_link_in_the_folder_of_the_page_is_no_file_of_it(tmp_path: Path):
    (tmp_path / "real.txt").write_text("a file of the page")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    (tmp_path / "other").symlink_to(STATIC)
    assert PageFiles(tmp_path).names == {"real.txt"}


def test_the_table_holds_every_file_of_the_page_under_its_own_name(served: Served):
    files = PageFiles()
    assert {str(path.relative_to(STATIC)) for path in STATIC.rglob("*") if path.is_file()} <= files.names
    for name in sorted(files.names):
        assert get(served, f"/web/{name}")[0] == 200
