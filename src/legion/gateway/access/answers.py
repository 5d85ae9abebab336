"""The errors of the gateway, and its own answers in the caller's dialect.

Errors raised while a request is handled:

    Exception
      Refused              the gateway answers itself, with a status and one sentence
      UpstreamBroken       the connection to the provider broke while its answer was read (http.forward)
      ModelFailed          a provider's answer that is an error although its status is 200 (dialects.messages)
      UnreadableMessage    bytes or fields that the dialect does not allow (json_text)
    LegionError            each also reaches a person as it is
      NoKey                a provider's key is missing (access.keys)
      Damaged              a file of the gateway's folder cannot be used (files.folder)
      GatewayFailed        the process did not start (lifecycle)

The caller only ever sees the first: `http` turns the others into a `Refused`, or into an error event where the answer
has already started. Two enums describe an error and are not raised: `ModelErrorKind` is what a dialect calls it,
`RequestError` is what the ledger calls it.
"""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web

from legion.gateway.accounting.ledger import RequestError
from legion.gateway.dialects import registry
from legion.gateway.dialects.messages import ModelError, ModelErrorKind
from legion.gateway.dialects.registry import Dialect
from legion.gateway.json_text import Json, UnreadableMessage, dumps

_NO_RETRY = {"x-should-retry": "false"}


class Refused(Exception):
    """The request ends here, with this status and one sentence."""

    def __init__(self, status: int, kind: ModelErrorKind, sentence: str, error: RequestError | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.kind = kind
        self.sentence = sentence
        self.error = error or (RequestError.BAD_REQUEST if status < 500 else None)
        """None where the ledger takes the provider's own name for the error."""

    def answer(self, dialect: Dialect = Dialect.ANTHROPIC) -> web.Response:
        _, body = registry.write_error(dialect, ModelError(kind=self.kind, message=f"legion: {self.sentence}"))
        # Programs retry after some refusals, unless a header forbids it.
        return json_answer(self.status, body, _NO_RETRY if self.status == 403 else {})


def unreadable(fault: UnreadableMessage) -> Refused:
    """The refusal of a request that its dialect does not allow."""
    return Refused(400, ModelErrorKind.INVALID, f"the request cannot be read: {fault}.")


def json_answer(status: int, facts: Json, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=dumps(facts), content_type="application/json", headers=headers)


def healthy(release: str) -> web.Response:
    return json_answer(200, {"status": "healthy", "release": release})
