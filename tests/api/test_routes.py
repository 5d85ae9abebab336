"""What can be asked, over both ways in, and how errors are answered."""

from __future__ import annotations

import http.client
import inspect
import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import pytest

from legion.client.http import UNKNOWN, DaemonAddress, NotRunning
from legion.client.legion import Legion
from legion.domain.errors import BadInput, ChecksFailed, LegionError, NotAllowed, NotFound, Retryable, StateConflict
from legion.service.operations import Service
from legion.wire.agents import HireAgent
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.operations import OPERATIONS, Operations
from legion.wire.projects import Where
from legion.wire.table import Operation
from tests.api.bodies import BODIES, REFUSED
from tests.api.serving import TOKEN, Served
from tests.support.sampling import sampled


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a person whose programs have no conversations."""
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture(params=["socket", "tcp"])
def legion(request: pytest.FixtureRequest, served: Served) -> Legion:
    return served.over_socket if request.param == "socket" else served.over_tcp


def argument(row: Operation, one: inspect.Parameter, cwd: str) -> object:
    if one is row.body:
        body = BODIES.get(row.name, Where(cwd=cwd) if "Where" in str(one.annotation) else None)
        places = {name: cwd for name, value in vars(body).items() if value == "CWD"} if body else {}
        return replace(body, **places) if places else body  # type: ignore[type-var]
    known = {
        "cwd": cwd,
        "name": {"role": "qa", "role_text": "qa", "team_text": "qa_team", "team": "qa_team", "models": ""}.get(
            row.name, "bug" if row.name == "template" else "x"
        ),
        "epic": "x",
        "query": "x",
    }
    return {
        "TicketId": 1,
        "QuestionId": 1,
        "PlanId": 1,
        "MemoryId": 1,
        "NoteId": 1,
        "RoutineId": 1,
        "AgentName": "tess",
        "MachineName": "desk",
    }.get(str(one.annotation), known.get(one.name, one.default))


@pytest.mark.parametrize("row", OPERATIONS.values(), ids=list(OPERATIONS))
def test_each_operation_reaches_the_service_and_its_answer_comes_back_whole(served: Served, row: Operation):
    is_answered_whole(served.over_socket, served, row)


@pytest.mark.parametrize("row", sampled(OPERATIONS.values(), 20), ids=lambda row: row.name)
def test_over_tcp_an_operation_is_answered_as_over_the_socket(served: Served, row: Operation):
    is_answered_whole(served.over_tcp, served, row)


def is_answered_whole(legion: Legion, served: Served, row: Operation) -> None:
    served.board.put(1, "First", "done")
    served.over_socket.hire(HireAgent(task="Stand there.", name="tess", cwd=served.board.cwd))
    served.board.callers.forget()
    call = partial(legion.call, row, {one.name: argument(row, one, served.board.cwd) for one in row.parameters})
    if row.name in REFUSED:
        with pytest.raises(REFUSED[row.name]):
            call()
    else:
        answer = call()
        assert type(answer) is row.answer
        assert vars(answer)["schema"] == row.answer.schema
    assert served.board.callers.asked == [row.name]


def test_every_row_has_its_use_case():
    """Those of the tools are with the callers."""
    assert [name for name in OPERATIONS if getattr(Service, name) is getattr(Operations, name)] == ["tools", "use_tool"]


def test_an_answer_is_the_very_dataclass_that_the_service_gave(legion: Legion, served: Served):
    served.board.put(1, "First", "done")
    assert legion.ticket(1) == served.board.service.ticket(1)
    assert legion.graph(served.board.cwd) == served.board.service.graph(served.board.cwd)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (BadInput("A."), 422),
        (NotFound("B."), 404),
        (NotAllowed("C."), 403),
        (StateConflict("D."), 409),
        (ChecksFailed("E."), 422),
        (Retryable("F."), 503),
        (LegionError("G."), 500),
    ],
)
def test_an_error_of_the_service_comes_back_as_itself(served: Served, error, status):
    served.board.callers.trouble = error
    with pytest.raises(LegionError) as raised:
        served.over_socket.status(None)
    assert type(raised.value) is type(error)
    assert raised.value.message == error.message
    assert raw(served, "GET", "/v1/status")[0] == status


def test_a_subclass_answers_as_its_parent(served: Served):
    class Special(StateConflict):
        pass

    served.board.callers.trouble = Special("Somebody was faster.")
    assert raw(served, "GET", "/v1/status")[0] == 409


def test_a_mistake_of_ours_is_one_sentence_without_its_insides(served: Served):
    served.board.callers.trouble = ZeroDivisionError("secret detail")
    status, content = raw(served, "GET", "/v1/status")
    assert status == 500
    assert content["code"] == "failed"
    assert "daemon.log" in content["message"]
    assert "secret" not in content["message"]


LONG = {"name": "a" * 300, "path": "/a" * 2500, "line": "a\nb", "blank": " ", "surrogate": "\udcff/x"}


@pytest.mark.parametrize(
    "row", [row for row in OPERATIONS.values() if "Folder" in str(row.parameters)], ids=lambda row: row.name
)
def test_no_folder_that_a_request_names_is_a_mistake_of_ours(served: Served, row: Operation):
    for name, folder in LONG.items():
        values = {one.name: 1 if "Id" in str(one.annotation) else "x" for one in row.in_path}
        place = row.path.format(**values) + "?" + urlencode({"cwd": folder.encode("utf-8", "surrogatepass")})
        status, content = raw(served, row.method, place, None if row.method == "GET" else {"cwd": folder})
        assert status < 500, (name, content)


def test_a_folder_in_a_body_that_is_too_long_is_the_callers_mistake(served: Served):
    for path in ("/" + "a" * 300, "/a" * 2500):
        status, content = raw(served, "POST", "/v1/projects", {"path": path})
        assert (status, content["exit_code"]) == (422, 2), content


def raw(
    served: Served, method: str, path: str, body: object = None, text: bytes | None = None, kind="application/json"
):
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    content = text if text is not None else None if body is None else json.dumps(body).encode()
    try:
        connection.request(method, path, content, {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


BIG = 10**30
BAD_REQUESTS: list[tuple[str, str, object, int, str]] = [
    ("GET", "/v1/nothing", None, 404, "no GET /v1/nothing"),
    ("GET", "/v1", None, 404, "openapi"),
    ("PUT", "/v1/status", None, 405, "not possible"),
    ("GET", "/v1/tickets/x", None, 404, "There is no GET /v1/tickets/"),
    ("GET", "/v1/tickets/0", None, 404, "There is no GET /v1/tickets/"),
    ("GET", f"/v1/tickets/{BIG}", None, 404, "There is no GET /v1/tickets/"),
    ("GET", "/v1/tickets/1/log?offset=-1", None, 422, "`offset`"),
    ("GET", "/v1/tickets/1/log?run=0", None, 422, "`run`"),
    ("GET", "/v1/graph", None, 422, "`cwd` is missing"),
    ("GET", "/v1/graph?cwd=%00", None, 422, "NUL"),
    ("GET", "/v1/wait?timeout=99", None, 422, "`timeout`"),
    ("GET", "/v1/wait?id=a", None, 422, "`id[0]`"),
    ("GET", "/v1/events?after=x", None, 422, "`after`"),
    ("POST", "/v1/tickets", None, 422, "missing"),
    ("POST", "/v1/tickets", [], 422, "must be a JSON object"),
    ("GET", f"/v1/graph?cwd=/{'a' * 300}", None, 422, "`cwd` is too long"),
    ("GET", f"/v1/graph?cwd={'/a' * 2500}", None, 422, "`cwd` is too long"),
    ("GET", f"/v1/events?cwd=/{'a' * 5000}", None, 422, "`cwd` is too long"),
    ("GET", "/v1/events?cwd=a%00b", None, 422, "NUL"),
    ("GET", f"/v1/agents/{'a' * 5000}", None, 404, "There is no GET /v1/agents/"),
    ("GET", "/v1/tickets/1/log?offset=x", None, 422, "must be a whole number"),
    ("GET", "/v1/status?all=perhaps", None, 422, "must be true or false"),
    ("POST", "/v1/tickets", {"cwd": "/x", "tickets": "a"}, 422, "`tickets` must be a list."),
    ("POST", "/v1/tickets", {"cwd": "/x", "tickets": [3]}, 422, "`tickets[0]` must be a JSON object."),
    ("POST", "/v1/tickets", {"cwd": "/x", "tickets": [{}]}, 422, "`tickets[0].title` is missing"),
    ("POST", "/v1/tickets", {"cwd": "/x", "tickets": [{"title": 5}]}, 422, "`tickets[0].title`"),
    ("POST", "/v1/tickets", {"cwd": "/x", "tickets": [{"title": "a", "titel": "b"}]}, 422, "`tickets[0].titel`"),
    ("POST", "/v1/tickets", {"cwd": "/x", "tickets": [{"title": "a\0"}]}, 422, "NUL"),
    ("POST", "/v1/tickets", {"cwd": "/x", "tickets": [{"title": "\ud800"}]}, 422, "nicode"),
    ("POST", "/v1/tickets", {"cwd": "/x", "tickets": [{"title": "a", "after": [BIG]}]}, 422, "`tickets[0].after[0]`"),
    ("POST", "/v1/project/pause", {"cwd": "a\0b"}, 422, "NUL"),
    ("POST", "/v1/tickets/1/retry", {"feedback": None}, 422, "`feedback`"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "said"), BAD_REQUESTS)
def test_bad_input_gets_one_sentence_and_reaches_nobody(served: Served, method, path, body, status, said):
    got, content = raw(served, method, path, body)
    assert got == status
    assert set(content) == {"schema", "code", "message", "exit_code"}
    assert said in content["message"]
    assert content["message"].endswith(".")
    assert "\n" not in content["message"]
    assert not re.search(r"instance|dataclass|dictionary|str\b|integer|boolean", content["message"])
    assert served.board.callers.asked == []


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/nothing", None),
        ("PUT", "/v1/status", None),
        ("POST", "/v1/tickets", {"cwd": "/x", "tickets": [{"title": "a", "titel": "b"}]}),
    ],
)
def test_what_the_api_does_not_know_has_the_mark_by_which_newer_programs_tell_it(served: Served, method, path, body):
    assert UNKNOWN in raw(served, method, path, body)[1]["message"]


def test_a_body_that_is_not_json_is_said_so(served: Served):
    assert "not valid JSON" in raw(served, "POST", "/v1/tickets", text=b"{nope")[1]["message"]


def test_a_body_that_a_foreign_page_could_send_is_refused(served: Served):
    status, content = raw(served, "POST", "/v1/project/pause", {"cwd": served.board.cwd}, kind="text/plain")
    assert (status, "Content-Type: application/json" in content["message"]) == (422, True)
    assert served.board.callers.asked == []


def test_actions_need_no_body(served: Served):
    served.board.put(1, state="working")
    assert raw(served, "POST", "/v1/tickets/1/stop")[0] == 200


def test_the_openapi_document_names_every_route_and_what_errors_look_like(served: Served):
    status, document = raw(served, "GET", "/v1/openapi.json")
    assert status == 200
    assert {"/health", "/v1/tickets/{id}", "/v1/events", "/v1/wait", "/v1/project/collect"} <= set(document["paths"])
    assert "HTTPBearer" in document["components"]["securitySchemes"]
    assert set(document["components"]["schemas"]["Problem"]["properties"]) == {"schema", "code", "message", "exit_code"}
    for path, methods in document["paths"].items():
        for method in methods.values():
            assert "default" in method["responses"], path
    labels = document["components"]["schemas"]["InviteMachine"]["properties"]["labels"]
    assert labels["description"] == "What `--on` finds it by, such as gpu,macos.", "the words of the command's option"


def test_every_body_refuses_a_field_that_nobody_knows(served: Served):
    _, document = raw(served, "GET", "/v1/openapi.json")
    bodies = {
        name
        for path, methods in document["paths"].items()
        if path.startswith("/v1/")
        for method in methods.values()
        for name in re.findall(r"#/components/schemas/(\w+)", json.dumps(method.get("requestBody", {})))
    }
    assert len(bodies) > 20
    schemas = document["components"]["schemas"]
    assert [name for name in sorted(bodies) if schemas[name].get("additionalProperties") is not False] == []


def test_a_big_answer_comes_whole(served: Served):
    text = "x" * 1_000_000
    long = NewTicket(title="Long", text=text, context=text, plan=text)
    made = served.over_socket.dispatch(Dispatch(cwd=served.board.cwd, tickets=[long]))
    page = served.over_socket.ticket(made.ids[0])
    assert (page.text, page.context, page.plan) == (text, text, text)


def test_a_megabyte_of_text_arrives_as_it_was_sent(served: Served):
    text = "ünï 🎉\n" * 150_000
    made = served.over_tcp.dispatch(Dispatch(cwd=served.board.cwd, tickets=[NewTicket(title="Long", text=text)]))
    assert served.board.tickets[made.ids[0]].spec.text == text


def test_the_client_learns_why_its_request_was_too_big(served: Served):
    text = "x" * (33 * 2**20)
    with pytest.raises(BadInput, match="32 MB"):
        served.over_socket.dispatch(Dispatch(cwd=served.board.cwd, tickets=[NewTicket(title="Long", text=text)]))


def test_nobody_listening_is_one_clear_error(served: Served):
    gone = Legion(DaemonAddress(socket=str(served.socket) + "x", token=TOKEN))
    with pytest.raises(NotRunning, match="legion up"):
        gone.status(None)


def test_what_is_not_legion_is_recognised(served: Served):
    stranger = Legion(DaemonAddress(port=served.port, token="wrong"))
    with pytest.raises(NotAllowed, match="token"):
        stranger.status(None)


@pytest.mark.parametrize(
    "body",
    [{"name": 1, "key": "sk-planted"}, {"name": "x", "key": ["sk-planted"]}, {"name": "x", "keys": "sk-planted"}],
)
def test_a_request_with_a_key_that_is_refused_does_not_repeat_it(legion: Legion, body):
    with pytest.raises(BadInput) as refused:
        legion.line.ask("POST", "/v1/providers", body=body)
    assert "sk-planted" not in refused.value.message
