"""Errors of each dialect: reads a status and a body into one kind of error, and writes it in another dialect."""

from __future__ import annotations

from dataclasses import dataclass

from legion.gateway.dialects.messages import ModelError, ModelErrorKind
from legion.gateway.json_text import Json

_TOO_LONG = "prompt is too long"
"""Anthropic's text, by which Claude Code recognizes that it has to shorten the conversation."""


@dataclass(frozen=True)
class _ErrorNames:
    status: int
    anthropic: str
    openai_status: int
    openai: str
    gemini: str
    code: str | None = None


_NAMES = {
    ModelErrorKind.INVALID: _ErrorNames(400, "invalid_request_error", 400, "invalid_request_error", "INVALID_ARGUMENT"),
    ModelErrorKind.TOO_LONG: _ErrorNames(
        400, "invalid_request_error", 400, "invalid_request_error", "INVALID_ARGUMENT", "context_length_exceeded"
    ),
    ModelErrorKind.AUTHENTICATION: _ErrorNames(
        401, "authentication_error", 401, "authentication_error", "UNAUTHENTICATED", "invalid_api_key"
    ),
    ModelErrorKind.BILLING: _ErrorNames(
        402, "billing_error", 429, "insufficient_quota", "PERMISSION_DENIED", "insufficient_quota"
    ),
    ModelErrorKind.PERMISSION: _ErrorNames(403, "permission_error", 403, "permission_error", "PERMISSION_DENIED"),
    ModelErrorKind.NOT_FOUND: _ErrorNames(
        404, "not_found_error", 404, "invalid_request_error", "NOT_FOUND", "model_not_found"
    ),
    ModelErrorKind.TOO_LARGE: _ErrorNames(
        413, "request_too_large", 413, "invalid_request_error", "INVALID_ARGUMENT", "request_too_large"
    ),
    ModelErrorKind.LIMIT: _ErrorNames(
        429, "rate_limit_error", 429, "rate_limit_error", "RESOURCE_EXHAUSTED", "rate_limit_exceeded"
    ),
    ModelErrorKind.API: _ErrorNames(500, "api_error", 500, "server_error", "INTERNAL"),
    ModelErrorKind.TIMEOUT: _ErrorNames(504, "timeout_error", 504, "server_error", "DEADLINE_EXCEEDED", "timeout"),
    ModelErrorKind.OVERLOADED: _ErrorNames(
        529, "overloaded_error", 503, "server_error", "UNAVAILABLE", "server_is_overloaded"
    ),
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
    """An error of any dialect; `status` is None in the middle of a stream. An unreadable one gets a message of ours."""
    error = document.get("error", document) if isinstance(document, dict) else document
    if not isinstance(error, dict):
        return ModelError(kind=_kind(None, None, "", status), message=_text(error, status))
    message = error.get("message") or error.get("detail") or _text(None, status)
    code, type_ = error.get("code"), error.get("type")
    return ModelError(kind=_kind(code, type_, str(message), status), message=str(message))


def status_for_anthropic(error: ModelError) -> int:
    return _NAMES[error.kind].status


def status_for_openai(error: ModelError) -> int:
    return _NAMES[error.kind].openai_status


def ledger_name(error: ModelError) -> str:
    """The error's name for the ledger; never its text, which may repeat a key."""
    return _NAMES[error.kind].anthropic


def anthropic(error: ModelError) -> Json:
    message = error.message
    if error.kind is ModelErrorKind.TOO_LONG and _TOO_LONG not in message.lower():
        message = f"{_TOO_LONG}: {message}"
    return {"type": "error", "error": {"type": _NAMES[error.kind].anthropic, "message": message}}


def openai(error: ModelError) -> Json:
    names = _NAMES[error.kind]
    return {"error": {"message": error.message, "type": names.openai, "param": None, "code": names.code}}


def status_for_gemini(error: ModelError) -> int:
    """Its callers retry a 429, and a spent account stays spent."""
    return 403 if error.kind is ModelErrorKind.BILLING else _NAMES[error.kind].openai_status


def gemini(error: ModelError) -> Json:
    names = _NAMES[error.kind]
    return {"error": {"code": status_for_gemini(error), "message": error.message, "status": names.gemini}}


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
    text = message.lower()
    return _TOO_LONG in text or "maximum context length" in text


def _text(message: object, status: int | None) -> str:
    if isinstance(message, str) and message.strip():
        return message.strip()
    return "the provider ended with an error" if status is None else f"the provider answered with status {status}"
