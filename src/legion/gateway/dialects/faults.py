"""Errors in the words of each dialect: what a status and a body mean, and how they are said to another caller."""

from __future__ import annotations

from dataclasses import dataclass

from legion.gateway.dialects.inner import Fault, FaultKind, Json

_TOO_LONG = "prompt is too long"
"""Anthropic's words, by which Claude Code knows that it has to shorten the conversation."""


@dataclass(frozen=True)
class _Words:
    status: int
    anthropic: str
    openai_status: int
    openai: str
    code: str | None = None


_WORDS = {
    FaultKind.INVALID: _Words(400, "invalid_request_error", 400, "invalid_request_error"),
    FaultKind.TOO_LONG: _Words(400, "invalid_request_error", 400, "invalid_request_error", "context_length_exceeded"),
    FaultKind.AUTHENTICATION: _Words(401, "authentication_error", 401, "authentication_error", "invalid_api_key"),
    FaultKind.BILLING: _Words(402, "billing_error", 429, "insufficient_quota", "insufficient_quota"),
    FaultKind.PERMISSION: _Words(403, "permission_error", 403, "permission_error"),
    FaultKind.NOT_FOUND: _Words(404, "not_found_error", 404, "invalid_request_error", "model_not_found"),
    FaultKind.TOO_LARGE: _Words(413, "request_too_large", 413, "invalid_request_error", "request_too_large"),
    FaultKind.LIMIT: _Words(429, "rate_limit_error", 429, "rate_limit_error", "rate_limit_exceeded"),
    FaultKind.API: _Words(500, "api_error", 500, "server_error"),
    FaultKind.TIMEOUT: _Words(504, "timeout_error", 504, "server_error", "timeout"),
    FaultKind.OVERLOADED: _Words(529, "overloaded_error", 503, "server_error", "server_is_overloaded"),
}
_STATUSES = {
    401: FaultKind.AUTHENTICATION,
    402: FaultKind.BILLING,
    403: FaultKind.PERMISSION,
    404: FaultKind.NOT_FOUND,
    408: FaultKind.TIMEOUT,
    413: FaultKind.TOO_LARGE,
    429: FaultKind.LIMIT,
    503: FaultKind.OVERLOADED,
    504: FaultKind.TIMEOUT,
    529: FaultKind.OVERLOADED,
}
_TYPES = {
    "authentication_error": FaultKind.AUTHENTICATION,
    "billing_error": FaultKind.BILLING,
    "insufficient_quota": FaultKind.BILLING,
    "permission_error": FaultKind.PERMISSION,
    "not_found_error": FaultKind.NOT_FOUND,
    "request_too_large": FaultKind.TOO_LARGE,
    "rate_limit_error": FaultKind.LIMIT,
    "timeout_error": FaultKind.TIMEOUT,
    "overloaded_error": FaultKind.OVERLOADED,
    "invalid_request_error": FaultKind.INVALID,
}
_CODES = {
    "context_length_exceeded": FaultKind.TOO_LONG,
    "insufficient_quota": FaultKind.BILLING,
    "invalid_api_key": FaultKind.AUTHENTICATION,
    "model_not_found": FaultKind.NOT_FOUND,
    "rate_limit_exceeded": FaultKind.LIMIT,
    "server_is_overloaded": FaultKind.OVERLOADED,
    "slow_down": FaultKind.OVERLOADED,
    "timeout": FaultKind.TIMEOUT,
}


def read(document: object, status: int | None = None) -> Fault:
    """An error of any dialect; `status` is None in the middle of a stream. What cannot be read says so."""
    error = document.get("error", document) if isinstance(document, dict) else document
    if not isinstance(error, dict):
        return Fault(kind=_kind(None, None, "", status), message=_plain(error, status))
    message = error.get("message") or error.get("detail") or _plain(None, status)
    code, type_ = error.get("code"), error.get("type")
    return Fault(kind=_kind(code, type_, str(message), status), message=str(message))


def status_for_anthropic(fault: Fault) -> int:
    return _WORDS[fault.kind].status


def status_for_openai(fault: Fault) -> int:
    return _WORDS[fault.kind].openai_status


def word(fault: Fault) -> str:
    """For the ledger: never the text, which may repeat a key."""
    return _WORDS[fault.kind].anthropic


def anthropic(fault: Fault) -> Json:
    message = fault.message
    if fault.kind is FaultKind.TOO_LONG and _TOO_LONG not in message.lower():
        message = f"{_TOO_LONG}: {message}"
    return {"type": "error", "error": {"type": _WORDS[fault.kind].anthropic, "message": message}}


def openai(fault: Fault) -> Json:
    words = _WORDS[fault.kind]
    return {"error": {"message": fault.message, "type": words.openai, "param": None, "code": words.code}}


def _kind(code: object, type_: object, message: str, status: int | None) -> FaultKind:
    if isinstance(code, str) and code in _CODES:
        return _CODES[code]
    kind = _STATUSES.get(status or 0)
    if kind is None:
        kind = _TYPES.get(type_) if isinstance(type_, str) else None
    if kind is None:
        kind = FaultKind.INVALID if status is not None and 400 <= status < 500 else FaultKind.API
    if kind is FaultKind.INVALID and _is_about_length(message):
        return FaultKind.TOO_LONG
    if kind is FaultKind.LIMIT and type_ == "insufficient_quota":
        return FaultKind.BILLING
    return kind


def _is_about_length(message: str) -> bool:
    words = message.lower()
    return _TOO_LONG in words or "maximum context length" in words


def _plain(said: object, status: int | None) -> str:
    if isinstance(said, str) and said.strip():
        return said.strip()
    return "the provider ended with an error" if status is None else f"the provider answered with status {status}"
