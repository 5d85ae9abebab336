"""Errors in the words of each dialect: what a status and a body mean, and how they are said to another caller."""

from __future__ import annotations

from dataclasses import dataclass

from legion.gateway.dialects.messages import ModelError, ModelErrorKind
from legion.gateway.json_text import Json

_TOO_LONG = "prompt is too long"
"""Anthropic's words, by which Claude Code knows that it has to shorten the conversation."""


@dataclass(frozen=True)
class _ErrorNames:
    status: int
    anthropic: str
    openai_status: int
    openai: str
    code: str | None = None


_WORDS = {
    ModelErrorKind.INVALID: _ErrorNames(400, "invalid_request_error", 400, "invalid_request_error"),
    ModelErrorKind.TOO_LONG: _ErrorNames(
        400, "invalid_request_error", 400, "invalid_request_error", "context_length_exceeded"
    ),
    ModelErrorKind.AUTHENTICATION: _ErrorNames(
        401, "authentication_error", 401, "authentication_error", "invalid_api_key"
    ),
    ModelErrorKind.BILLING: _ErrorNames(402, "billing_error", 429, "insufficient_quota", "insufficient_quota"),
    ModelErrorKind.PERMISSION: _ErrorNames(403, "permission_error", 403, "permission_error"),
    ModelErrorKind.NOT_FOUND: _ErrorNames(404, "not_found_error", 404, "invalid_request_error", "model_not_found"),
    ModelErrorKind.TOO_LARGE: _ErrorNames(413, "request_too_large", 413, "invalid_request_error", "request_too_large"),
    ModelErrorKind.LIMIT: _ErrorNames(429, "rate_limit_error", 429, "rate_limit_error", "rate_limit_exceeded"),
    ModelErrorKind.API: _ErrorNames(500, "api_error", 500, "server_error"),
    ModelErrorKind.TIMEOUT: _ErrorNames(504, "timeout_error", 504, "server_error", "timeout"),
    ModelErrorKind.OVERLOADED: _ErrorNames(529, "overloaded_error", 503, "server_error", "server_is_overloaded"),
}
_STATUSES = {
    401: ModelErrorKind.AUTHENTICATION,
    402: ModelErrorKind.BILLING,
    403: ModelErrorKind.PERMISSION,
    404: ModelErrorKind.NOT_FOUND,
    408: ModelErrorKind.TIMEOUT,
    413: ModelErrorKind.TOO_LARGE,
    429: ModelErrorKind.LIMIT,
    503: ModelErrorKind.OVERLOADED,
    504: ModelErrorKind.TIMEOUT,
    529: ModelErrorKind.OVERLOADED,
}
_TYPES = {
    "authentication_error": ModelErrorKind.AUTHENTICATION,
    "billing_error": ModelErrorKind.BILLING,
    "insufficient_quota": ModelErrorKind.BILLING,
    "permission_error": ModelErrorKind.PERMISSION,
    "not_found_error": ModelErrorKind.NOT_FOUND,
    "request_too_large": ModelErrorKind.TOO_LARGE,
    "rate_limit_error": ModelErrorKind.LIMIT,
    "timeout_error": ModelErrorKind.TIMEOUT,
    "overloaded_error": ModelErrorKind.OVERLOADED,
    "invalid_request_error": ModelErrorKind.INVALID,
}
_CODES = {
    "context_length_exceeded": ModelErrorKind.TOO_LONG,
    "insufficient_quota": ModelErrorKind.BILLING,
    "invalid_api_key": ModelErrorKind.AUTHENTICATION,
    "model_not_found": ModelErrorKind.NOT_FOUND,
    "rate_limit_exceeded": ModelErrorKind.LIMIT,
    "server_is_overloaded": ModelErrorKind.OVERLOADED,
    "slow_down": ModelErrorKind.OVERLOADED,
    "timeout": ModelErrorKind.TIMEOUT,
}


def read(document: object, status: int | None = None) -> ModelError:
    """An error of any dialect; `status` is None in the middle of a stream. What cannot be read says so."""
    error = document.get("error", document) if isinstance(document, dict) else document
    if not isinstance(error, dict):
        return ModelError(kind=_kind(None, None, "", status), message=_plain(error, status))
    message = error.get("message") or error.get("detail") or _plain(None, status)
    code, type_ = error.get("code"), error.get("type")
    return ModelError(kind=_kind(code, type_, str(message), status), message=str(message))


def status_for_anthropic(fault: ModelError) -> int:
    return _WORDS[fault.kind].status


def status_for_openai(fault: ModelError) -> int:
    return _WORDS[fault.kind].openai_status


def ledger_name(fault: ModelError) -> str:
    """For the ledger: never the text, which may repeat a key."""
    return _WORDS[fault.kind].anthropic


def anthropic(fault: ModelError) -> Json:
    message = fault.message
    if fault.kind is ModelErrorKind.TOO_LONG and _TOO_LONG not in message.lower():
        message = f"{_TOO_LONG}: {message}"
    return {"type": "error", "error": {"type": _WORDS[fault.kind].anthropic, "message": message}}


def openai(fault: ModelError) -> Json:
    words = _WORDS[fault.kind]
    return {"error": {"message": fault.message, "type": words.openai, "param": None, "code": words.code}}


def _kind(code: object, type_: object, message: str, status: int | None) -> ModelErrorKind:
    if isinstance(code, str) and code in _CODES:
        return _CODES[code]
    kind = _STATUSES.get(status or 0)
    if kind is None:
        kind = _TYPES.get(type_) if isinstance(type_, str) else None
    if kind is None:
        kind = ModelErrorKind.INVALID if status is not None and 400 <= status < 500 else ModelErrorKind.API
    if kind is ModelErrorKind.INVALID and _is_about_length(message):
        return ModelErrorKind.TOO_LONG
    if kind is ModelErrorKind.LIMIT and type_ == "insufficient_quota":
        return ModelErrorKind.BILLING
    return kind


def _is_about_length(message: str) -> bool:
    words = message.lower()
    return _TOO_LONG in words or "maximum context length" in words


def _plain(said: object, status: int | None) -> str:
    if isinstance(said, str) and said.strip():
        return said.strip()
    return "the provider ended with an error" if status is None else f"the provider answered with status {status}"
