"""Browsers at the guard: one-time codes, secrets, what a page of another site cannot do."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from legion.api import devices
from legion.domain.devices import Device
from legion.store.database import schema
from legion.wire.dispatch import TICKET_FIELDS, Dispatch, NewTicket
from legion.wire.errors import NotAllowed
from legion.wire.mail import AnswerQuestion
from legion.wire.operations import OPERATIONS
from legion.wire.table import OpenTo
from legion.wire.tickets import Action, EditTicket
from legion.wire.web import OfferDevice, RevokeDevice
from tests.api.serving import Served
from tests.api.test_guard import ask
from tests.support.attacks import Attacker, Door, attack

PAGE = {"Legion-Page": "1"}


def offered(served: Served, *, read_only: bool = False) -> str:
    code: str = served.over_socket.offer_device(OfferDevice(read_only=read_only)).code
    return code


def log_in(served: Served, code: str, headers: dict[str, str] = PAGE):
    return ask(served, "/web/login", headers, "POST", json.dumps({"code": code, "name": "my phone"}).encode())


def let_in(served: Served, *, read_only: bool = False) -> dict[str, str]:
    """The headers of the page in a browser that was let in."""
    _, session = log_in(served, offered(served, read_only=read_only))
    return {"Legion-Device": session["secret"]}


def test_a_code_lets_one_browser_in_once(served: Served):
    code = offered(served)
    answer, session = log_in(served, code)
    assert answer.status == 200
    assert (session["name"], session["rights"]) == ("my phone", "full")
    assert len(session["secret"]) >= 40
    assert "Set-Cookie" not in answer.headers
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
    secret = headers["Legion-Device"]
    with served.board.store.read() as tx:
        stored = str([tuple(row) for row in tx.execute(schema.devices.select())])
    assert code not in stored
    assert secret not in stored


def test_the_page_reads_and_acts_with_its_secret(served: Served):
    headers = let_in(served)
    assert ask(served, "/v1/status", headers)[0].status == 200
    served.board.put(1, state="working")
    assert ask(served, "/v1/tickets/1/stop", headers, "POST", b"")[0].status == 200


@attack(Attacker.PAGE, Door.ORIGIN)
@pytest.mark.parametrize(
    "changed",
    [
        {"Legion-Device": None},
        {"Legion-Device": None, "Legion-Page": "1"},
        {"Origin": "http://evil.test"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Host": "evil.test"},
        {"Host": "localhost"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:1"},
        {"Legion-Device": "wrong"},
    ],
    ids=str,
)
def test_a_page_of_another_site_does_nothing_with_the_secret(served: Served, changed: dict[str, str | None]):
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


def raw(served: Served, path: str, headers: dict[str, str] | None = None):
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    try:
        connection.request("GET", path, headers=headers or {})
        answer = connection.getresponse()
        answer.read()
        return answer
    finally:
        connection.close()


FOREIGN_COOKIES = [
    'prefs={"a":1,"b":"x y"}',
    "a[b]=1",
    "flag",
    "name=J\u00f6rg",
    "a=b c",
    "=",
    ";;",
    "legion=",
    "a=b=c",
]


@attack(Attacker.DEV_SERVER, Door.ORIGIN)
@pytest.mark.parametrize("cookie", FOREIGN_COOKIES)
def test_cookies_of_other_programs_lock_nobody_out(served: Served, cookie: str):
    headers = let_in(served)
    raw_cookie = {"Cookie": f"{cookie}; other=1".encode().decode("latin-1")}
    assert ask(served, "/v1/status", {**headers, **raw_cookie})[0].status == 200
    answer, session = log_in(served, offered(served), {**PAGE, **raw_cookie})
    assert (answer.status, bool(session["secret"])) == (200, True)


@attack(Attacker.DEV_SERVER, Door.ORIGIN)
@pytest.mark.parametrize("name", ["legion", "legion-{port}", "legion-6670"])
def test_a_cookie_of_an_older_release_opens_nothing_and_is_deleted(served: Served, name: str):
    secret, name = let_in(served)["Legion-Device"], name.format(port=served.port)
    for headers in ({}, PAGE):
        answer, _ = ask(served, "/v1/status", {**headers, "Cookie": f"theme=dark; {name}={secret}; x=y"})
        assert answer.status == 401
        assert answer.headers["Set-Cookie"].startswith(f"{name}=; Max-Age=0;")


PHONE = Device(id=1, name="", host="192.168.1.5:6680", read_only=False, made_at=0.0, seen_at=None, revoked_at=None)
PLAIN, ENCRYPTED = ({devices.DEVICE: PHONE, "scheme": scheme} for scheme in ("http", "https"))
OTHER = {
    "files": ["ci.yml"],
    "on": ["gpu"],
    "accept": ["login"],
    "prove": ["make pwned"],
    "review": "off",
    "gate": "auto",
}


def refused(scope: Mapping[str, object], name: str, body: object) -> bool:
    row = OPERATIONS[name]
    assert row.body is not None
    try:
        devices.refuse_over_plain_network(scope, row, {row.body.name: body})
    except NotAllowed:
        return True
    return False


@attack(Attacker.NETWORK, Door.RIGHTS)
@pytest.mark.parametrize("name", ["command", "driver", "model", "team", "branch", "ask", "worker_id", *OTHER])
def test_over_a_plain_network_a_ticket_chooses_no_program(name: str):
    kind = TICKET_FIELDS[name].kind.value
    value: Any = OTHER.get(name, {"flag": True, "number": 1}.get(kind, "touch pwned"))
    wanted = Dispatch(cwd="/shop", tickets=[NewTicket(title="a"), NewTicket(title="b", **{name: value})])
    assert refused(PLAIN, "dispatch", wanted)
    assert not refused(ENCRYPTED, "dispatch", wanted)
    assert not refused({}, "dispatch", wanted)


def test_over_a_plain_network_a_ticket_can_be_written_and_questions_answered():
    ticket = NewTicket(title="a", text="b", context="c", criteria="d", after=[1], epic="e", priority=3, labels=["f"])
    assert not refused(PLAIN, "dispatch", Dispatch(cwd="/shop", tickets=[ticket], request="1"))
    assert not refused(PLAIN, "retry", Action(feedback="again"))
    assert not refused(PLAIN, "answer", AnswerQuestion(choice="land", why="good"))


@attack(Attacker.NETWORK, Door.RIGHTS)
def test_over_a_plain_network_no_answer_and_no_retry_changes_what_agents_may_do():
    assert refused(PLAIN, "answer", AnswerQuestion(choice="always"))
    assert refused(PLAIN, "retry", Action(edit=EditTicket(title="other")))


@attack(Attacker.NETWORK, Door.RIGHTS)
@pytest.mark.parametrize(
    "name",
    [
        *("add_provider", "trust", "save_role", "add_project", "set_route", "revoke_device", "add_driver", "add_forge"),
        *(
            "import_tickets",
            "add_routine",
            "run_routine",
            "use_tool",
            "tools",
            "collect",
            "merge_pulls",
            "hire",
            "race",
        ),
        *("save_plan", "run_template", "edit", "shell", "attach", "new_by_hand", "push", "handoff", "adopt", "pull"),
        *("invite_machine", "begin_login", "offer_device", "open_web", "shutdown", "try_changes", "set_numbers"),
    ],
)
def test_over_a_plain_network_nothing_decides_what_runs_as_the_person(name: str):
    assert OpenTo.LIMITED not in OPERATIONS[name].open_to
