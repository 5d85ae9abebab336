"""Errors keep their meaning from dialect to dialect, so that programs do the right thing about them."""

from __future__ import annotations

import pytest

from legion.gateway.dialects import errors
from legion.gateway.dialects.messages import ModelError, ModelErrorKind
from legion.gateway.dialects.registry import PROVIDER_DIALECTS, Dialect, write_error


def openai(message: str = "no", **more: object) -> dict[str, object]:
    return {"error": {"message": message, **more}}


MEANINGS = [
    (401, openai(code="invalid_api_key"), 401, "authentication_error"),
    (401, "not JSON", 401, "authentication_error"),
    (402, openai(), 402, "billing_error"),
    (403, openai(), 403, "permission_error"),
    (404, openai(code="model_not_found"), 404, "not_found_error"),
    (413, openai(), 413, "request_too_large"),
    (422, openai(), 400, "invalid_request_error"),
    (429, openai(type="requests", code="rate_limit_exceeded"), 429, "rate_limit_error"),
    (429, openai(type="insufficient_quota", code="insufficient_quota"), 402, "billing_error"),
    (500, openai(type="server_error"), 500, "api_error"),
    (502, "<html>bad gateway</html>", 500, "api_error"),
    (503, openai(), 529, "overloaded_error"),
    (504, None, 504, "timeout_error"),
    (529, {"type": "error", "error": {"type": "overloaded_error", "message": "no"}}, 529, "overloaded_error"),
]


@pytest.mark.parametrize(("status", "body", "outcome", "kind"), MEANINGS)
def test_an_error_means_the_same_to_a_program_of_anthropics(status, body, outcome, kind):
    answered, document = write_error(Dialect.ANTHROPIC, errors.read(body, status))
    assert (answered, document["error"]["type"]) == (outcome, kind)
    assert document["error"]["message"]


@pytest.mark.parametrize("kind", ModelErrorKind)
@pytest.mark.parametrize("dialect", PROVIDER_DIALECTS)
def test_an_error_survives_every_dialect(kind, dialect):
    status, body = write_error(dialect, ModelError(kind=kind, message="it did not work"))
    assert errors.read(body, status).kind is kind


def test_a_prompt_that_is_too_long_is_said_in_the_words_that_programs_know():
    fault = errors.read(openai("Too many tokens.", code="context_length_exceeded"), 400)
    assert "prompt is too long" in write_error(Dialect.ANTHROPIC, fault)[1]["error"]["message"]
    error = {"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}
    same = errors.read({"type": "error", "error": error}, 400)
    assert write_error(Dialect.CHAT, same)[1]["error"]["code"] == "context_length_exceeded"
