"""What can be asked, over both ways in, and how errors are answered."""

from __future__ import annotations

import http.client
import json
import re
from dataclasses import fields, is_dataclass

import pytest

from legion.client.http import UNKNOWN, DaemonAddress, NotRunning
from legion.client.legion import Legion
from legion.domain.errors import BadInput, ChecksFailed, LegionError, NotAllowed, NotFound, Retryable, StateConflict
from legion.wire.projects import AddProject, Trust, Where
from legion.wire.providers import AddProvider, BeginLogin, FinishLogin, SetRoute, TryProvider
from legion.wire.questions import MessageText
from legion.wire.teams import SaveDefinition
from legion.wire.tickets import Action, Dispatch, NewTicket, SetRecording
from tests.api.serving import TOKEN, Served

HERE = Where(cwd="/src/shop")


@pytest.fixture(params=["socket", "tcp"])
def legion(request: pytest.FixtureRequest, served: Served) -> Legion:
    served.service.put(1, "First")
    return served.over_socket if request.param == "socket" else served.over_tcp


ASKED = [
    ("add_project", lambda legion: legion.add_project(AddProject(path="/src/shop"))),
    ("remove_project", lambda legion: legion.remove_project(HERE)),
    ("trustable", lambda legion: legion.trustable(HERE)),
    ("trust", lambda legion: legion.trust(Trust(cwd="/src/shop", hashes=[]))),
    ("dispatch", lambda legion: legion.dispatch(Dispatch(cwd="/src/shop", tickets=[NewTicket(title="A")]))),
    ("status", lambda legion: legion.status("/src/shop")),
    ("ticket", lambda legion: legion.ticket(1)),
    ("log", lambda legion: legion.log(1)),
    ("diff", lambda legion: legion.diff(1)),
    ("graph", lambda legion: legion.graph("/src/shop")),
    ("wait", lambda legion: legion.wait(None, [1], timeout=0)),
    ("stop", lambda legion: legion.stop(1, Action())),
    ("stop_all", lambda legion: legion.stop_all(HERE)),
    ("retry", lambda legion: legion.retry(1, Action(feedback="More."))),
    ("review", lambda legion: legion.review(1)),
    ("bounce", lambda legion: legion.bounce(1, Action(feedback="More."))),
    ("drop", lambda legion: legion.drop(1)),
    ("pause", lambda legion: legion.pause(HERE)),
    ("resume", lambda legion: legion.resume(HERE)),
    ("pause_ticket", lambda legion: legion.pause_ticket(1)),
    ("resume_ticket", lambda legion: legion.resume_ticket(1)),
    ("roles", lambda legion: legion.roles("/src/shop")),
    ("role", lambda legion: legion.role("/src/shop", "qa")),
    ("teams", lambda legion: legion.teams(None)),
    ("team", lambda legion: legion.team("/src/shop", "pair")),
    ("definition", lambda legion: legion.definition("team", None, "pair", new=True, like="solo")),
    ("save_definition", lambda legion: legion.save_definition("role", SaveDefinition(cwd="/", name="a", text="b"))),
    ("remove_definition", lambda legion: legion.remove_definition("team", None, "pair")),
    ("inbox", lambda legion: legion.inbox()),
    ("tell", lambda legion: legion.tell(1, MessageText(text="Hello."))),
    ("interrupt", lambda legion: legion.interrupt(1, MessageText())),
    ("providers", lambda legion: legion.providers()),
    ("add_provider", lambda legion: legion.add_provider(AddProvider(name="anthropic", key="sk-1"))),
    ("try_provider", lambda legion: legion.try_provider(TryProvider(name="anthropic"))),
    ("begin_login", lambda legion: legion.begin_login(BeginLogin(name="copilot", unofficial=True))),
    ("finish_login", lambda legion: legion.finish_login(FinishLogin(id="1"))),
    ("routes", lambda legion: legion.routes()),
    ("set_route", lambda legion: legion.set_route(SetRoute(model="claude-*", to=["ollama/qwen3"]))),
    ("switch_recording", lambda legion: legion.switch_recording(SetRecording(on=True))),
    ("cassette", lambda legion: legion.cassette(1, "login")),
    ("models", lambda legion: legion.models("anthropic")),
    ("collect", lambda legion: legion.collect(HERE)),
    ("worktrees", lambda legion: legion.worktrees(HERE)),
    ("doctor", lambda legion: legion.doctor(None)),
    ("config", lambda legion: legion.config("/src/shop")),
    ("shutdown", lambda legion: legion.shutdown()),
]


@pytest.mark.parametrize(("name", "ask"), ASKED, ids=[name for name, _ in ASKED])
def test_each_question_reaches_the_service_and_its_answer_comes_back_whole(legion: Legion, served: Served, name, ask):
    answer = ask(legion)
    assert served.service.asked == [name]
    assert is_dataclass(answer)
    schema = next(field.default for field in fields(answer) if field.name == "schema")
    assert vars(answer)["schema"] == schema


def test_an_answer_is_the_very_dataclass_that_the_service_gave(legion: Legion, served: Served):
    assert legion.ticket(1) == served.service.ticket(1)
    assert legion.graph("/src/shop") == served.service.graph("/src/shop")


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
    served.service.trouble = error
    with pytest.raises(LegionError) as raised:
        served.over_socket.status(None)
    assert type(raised.value) is type(error)
    assert raised.value.message == error.message
    assert raw(served, "GET", "/v1/status")[0] == status


def test_a_subclass_answers_as_its_parent(served: Served):
    class Special(StateConflict):
        pass

    served.service.trouble = Special("Somebody was faster.")
    assert raw(served, "GET", "/v1/status")[0] == 409


def test_a_mistake_of_ours_is_one_sentence_without_its_insides(served: Served):
    served.service.trouble = ZeroDivisionError("secret detail")
    status, content = raw(served, "GET", "/v1/status")
    assert status == 500
    assert content["code"] == "failed"
    assert "daemon.log" in content["message"]
    assert "secret" not in content["message"]


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
    ("GET", "/", None, 404, "openapi"),
    ("PUT", "/v1/status", None, 405, "not possible"),
    ("GET", "/v1/tickets/x", None, 422, "`id`"),
    ("GET", "/v1/tickets/0", None, 422, "`id`"),
    ("GET", f"/v1/tickets/{BIG}", None, 422, "`id`"),
    ("GET", "/v1/tickets/1/log?offset=-1", None, 422, "`offset`"),
    ("GET", "/v1/tickets/1/log?run=0", None, 422, "`run`"),
    ("GET", "/v1/graph", None, 422, "`cwd` is missing"),
    ("GET", "/v1/graph?cwd=%00", None, 422, "NUL"),
    ("GET", "/v1/wait?timeout=99", None, 422, "`timeout`"),
    ("GET", "/v1/wait?id=a", None, 422, "`id[0]`"),
    ("GET", "/v1/events?after=x", None, 422, "`after`"),
    ("POST", "/v1/tickets", None, 422, "missing"),
    ("POST", "/v1/tickets", [], 422, "not acceptable"),
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
    assert served.service.asked == []


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
    status, content = raw(served, "POST", "/v1/project/pause", {"cwd": "/src/shop"}, kind="text/plain")
    assert (status, "Content-Type: application/json" in content["message"]) == (422, True)
    assert served.service.asked == []


def test_actions_need_no_body(served: Served):
    served.service.put(1)
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
    served.service.log_text = "x" * 3_000_000
    served.service.put(1)
    assert len(served.over_socket.log(1).text) == 3_000_000


def test_a_megabyte_of_text_arrives_as_it_was_sent(served: Served):
    text = "ünï 🎉\n" * 150_000
    made = served.over_tcp.dispatch(Dispatch(cwd="/src/shop", tickets=[NewTicket(title="Long", text=text)]))
    assert served.service.texts[made.ids[0]] == text


def test_the_client_learns_why_its_request_was_too_big(served: Served):
    text = "x" * (33 * 2**20)
    with pytest.raises(BadInput, match="32 MB"):
        served.over_socket.dispatch(Dispatch(cwd="/src/shop", tickets=[NewTicket(title="Long", text=text)]))


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
