"""Browsers at the guard: one-time codes, cookies, what a page of another site cannot do."""

from __future__ import annotations

import http.client
import json
import threading

import pytest

from legion.api import devices
from legion.domain.devices import Device
from legion.store.database import schema
from legion.wire.operations import OPERATIONS
from legion.wire.web import OfferDevice, RevokeDevice
from tests.api.serving import Served
from tests.api.test_guard import ask

PAGE = {"Legion-Page": "1"}


def offered(served: Served, *, read_only: bool = False) -> str:
    code: str = served.over_socket.offer_device(OfferDevice(read_only=read_only)).code
    return code


def log_in(served: Served, code: str, headers: dict[str, str] = PAGE):
    return ask(served, "/web/login", headers, "POST", json.dumps({"code": code, "name": "my phone"}).encode())


def let_in(served: Served, *, read_only: bool = False) -> dict[str, str]:
    """The headers of the page in a browser that was let in."""
    answer, _ = log_in(served, offered(served, read_only=read_only))
    return {**PAGE, "Cookie": answer.headers["Set-Cookie"].partition(";")[0]}


def test_a_code_lets_one_browser_in_once(served: Served):
    code = offered(served)
    answer, session = log_in(served, code)
    assert answer.status == 200
    assert (session["name"], session["rights"]) == ("my phone", "full")
    kept = answer.headers["Set-Cookie"]
    assert all(part in kept for part in ("HttpOnly", "SameSite=Strict", "Path=/"))
    assert "Domain" not in kept
    again, problem = log_in(served, code)
    assert (again.status, problem["code"]) == (403, "not_allowed")
    assert "legion web" in problem["message"]


def test_two_browsers_with_one_code_at_the_same_moment(served: Served):
    code, statuses = offered(served), []
    threads = [threading.Thread(target=lambda: statuses.append(log_in(served, code)[0].status)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [200, *[403] * 5]


def test_a_code_ends_after_two_minutes(served: Served):
    code = offered(served)
    with served.board.store.write() as tx:
        tx.execute(schema.devices.update().values(code_ends_at=tx.now))
    assert log_in(served, code)[0].status == 403


def test_code_and_secret_are_stored_as_hashes(served: Served):
    code = offered(served)
    headers = let_in(served)
    secret = headers["Cookie"].partition("=")[2]
    with served.board.store.read() as tx:
        stored = str([tuple(row) for row in tx.execute(schema.devices.select())])
    assert code not in stored
    assert secret not in stored


def test_the_page_reads_and_acts_with_its_cookie(served: Served):
    headers = let_in(served)
    assert ask(served, "/v1/status", headers)[0].status == 200
    served.board.put(1, state="working")
    assert ask(served, "/v1/tickets/1/stop", headers, "POST", b"")[0].status == 200


@pytest.mark.parametrize(
    "changed",
    [
        {"Legion-Page": None},
        {"Origin": "http://evil.test"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Host": "evil.test"},
        {"Host": "localhost"},
        {"Cookie": "legion=wrong"},
    ],
    ids=str,
)
def test_a_page_of_another_site_does_nothing_with_the_cookie(served: Served, changed: dict[str, str | None]):
    headers = {name: value for name, value in (let_in(served) | changed).items() if value is not None}
    served.board.put(1, state="working")
    for path, method in (("/v1/status", "GET"), ("/v1/tickets/1/stop", "POST"), ("/v1/events", "GET")):
        answer, _ = ask(served, path, headers, method, b"" if method == "POST" else None)
        assert answer.status in (401, 403, 421), (path, answer.status)
    assert served.board.tickets[1].state.value == "working"


def test_no_site_may_ask_for_permission_to_send_our_header(served: Served):
    wants = {
        "Origin": "http://evil.test",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "legion-page",
    }
    answer, _ = ask(served, "/v1/tickets/1/stop", wants, "OPTIONS")
    assert answer.status == 403
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_a_read_only_device_looks_and_does_not_act(served: Served):
    headers = let_in(served, read_only=True)
    served.board.put(1, state="working")
    assert ask(served, "/v1/tickets/1", headers)[0].status == 200
    answer, problem = ask(served, "/v1/tickets/1/stop", headers, "POST", b"")
    assert answer.status == 403
    assert "only look" in problem["message"]
    assert served.board.tickets[1].state.value == "working"


@pytest.mark.parametrize("name", ["offer_device", "shutdown"])
def test_a_device_lets_nobody_else_in_and_ends_nothing(served: Served, name: str):
    row = OPERATIONS[name]
    answer, problem = ask(served, row.path, let_in(served), row.method, b"{}")
    assert answer.status == 403
    assert "command line" in problem["message"]
    assert not served.board.down.is_set()


@pytest.mark.parametrize(
    "name", ["add_provider", "trust", "save_role", "add_project", "set_route", "revoke_device", "add_driver"]
)
@pytest.mark.parametrize(("scheme", "may"), [("http", False), ("https", True)])
def test_over_a_plain_network_nothing_decides_what_runs_as_the_person(name: str, scheme: str, may: bool):
    phone = Device(id=1, name="", host="192.168.1.5:6680", read_only=False, made_at=0.0, seen_at=None, revoked_at=None)
    row = OPERATIONS[name]
    assert (devices.fault(phone, row.method, row.path, scheme=scheme) == "") is may
    assert devices.fault(phone, "POST", "/v1/tickets/12/stop", scheme=scheme) == ""


def test_a_revoked_device_is_out_at_once_and_its_stream_ends(served: Served):
    headers = let_in(served)
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    connection.request("GET", f"/v1/events?after={served.board.last_event}", headers=headers)
    stream = connection.getresponse()
    assert stream.readline().startswith(b": Legion")
    (device,) = served.over_socket.devices().devices
    assert (device.name, device.read_only) == ("my phone", False)
    served.over_socket.revoke_device(RevokeDevice(id=device.id))
    rest = stream.read()
    connection.close()
    assert b"device.revoked" not in rest
    answer, _ = ask(served, "/v1/status", headers)
    assert answer.status == 401
    assert "Max-Age=0" in answer.headers["Set-Cookie"]
    assert served.over_socket.devices().devices == []


def test_revoking_all_withdraws_links_that_wait(served: Served):
    code = offered(served)
    let_in(served)
    served.over_socket.revoke_device(RevokeDevice())
    assert log_in(served, code)[0].status == 403


def test_the_files_are_open_and_closed_to_frames_and_foreign_scripts(served: Served):
    for path in (
        "/",
        "/web/app/main.js",
        "/web/vendor/preact.mjs",
        "/web/app.css",
        "/sw.js",
        "/web/legion.webmanifest",
    ):
        answer = raw(served, path)
        assert answer.status == 200, path
        policy = answer.headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
    assert raw(served, "/", {"If-None-Match": raw(served, "/").headers["ETag"]}).status == 304


@pytest.mark.parametrize(
    "path", ["/web/../../__init__.py", "/web/%2e%2e/__init__.py", "/web/vendor.toml", "/web/", "/web/x.js"]
)
def test_no_other_file_is_served(served: Served, path: str):
    assert raw(served, path).status == 404


def raw(served: Served, path: str, headers: dict[str, str] | None = None):
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    try:
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        answer.read()
        return answer
    finally:
        connection.close()
