"""One request to the daemon over its unix socket or TCP: JSON in, JSON out, a Problem as the error it was.

It speaks HTTP/1.0, where an answer ends with its connection, and so needs no library: importing one would cost more
than the rest of a command. For the same reason it does without dataclasses and typing.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator, Mapping

from legion import __version__
from legion.wire.errors import BadInput, LegionError, Retryable, error_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

Query = Mapping[str, str | int | float | bool | list[int] | None]

ANSWER_TIMEOUT = 600.0
"""Making a hub of a large repository takes a while; a daemon that died is noticed at once anyway."""
_MUCH = 1 << 16


UNKNOWN = "/v1/openapi.json lists"
"""Part of every daemon's message about a route or a field that it does not know; nothing else marks it."""
_LONGEST_HEAD_LINE = 1 << 16
_MOST_HEADERS = 100


class NotRunning(Retryable):
    """No daemon listens there, or the connection broke before the answer came."""


class Unanswered(NotRunning):
    """The request was sent, and it is unknown whether it was carried out."""


class OtherVersion(LegionError):
    """Daemon and program are of different versions, and one does not understand the other."""

    code = "other_version"

    def __init__(self, daemon: str) -> None:
        if _release(daemon) > _release(__version__):
            message = f"The daemon is newer ({daemon}) than this program ({__version__}): update the program."
        elif daemon != __version__:
            message = (
                f"The daemon is older ({daemon}) than this program ({__version__}): "
                "run `legion down`, then `legion up`."
            )
        else:
            message = "Daemon and program do not understand each other: run `legion down`, then `legion up`."
        super().__init__(message)


class DaemonAddress:
    """The address and token of a daemon. The unix socket is used where there is one."""

    def __init__(
        self, *, socket: str | None = None, host: str = "127.0.0.1", port: int = 0, token: str, session: str = ""
    ) -> None:
        self.socket = socket
        self.host = host
        self.port = port
        self.token = token
        self.session = session
        """The caller's id, from LEGION_SESSION_ID. The daemon refuses it where the token is another caller's."""

    def __str__(self) -> str:
        return self.socket or f"http://{self.host}:{self.port}"


class NotHttp(Exception):
    """What came back is no HTTP answer."""


class ConnectionLost(Exception):
    """The connection ended in the middle of an answer."""


class HttpAnswer:
    def __init__(self, status: int, headers: Mapping[str, str], body: BinaryIO) -> None:
        self.status = status
        self.headers = headers
        """By lower-case name."""
        self.body = body

    def read(self) -> bytes:
        """No more than was promised: behind it may come a reset, from a daemon that did not read all of the request."""
        promised = self.headers.get("content-length", "")
        if not promised.isdigit():
            return self.body.read()
        content = self.body.read(int(promised))
        if len(content) < int(promised):
            raise ConnectionLost
        return content


class DaemonConnection:
    """Sends requests to one daemon, each over its own connection, so it may be used from any thread."""

    def __init__(self, address: DaemonAddress) -> None:
        self.address = address
        self.daemon_version = __version__
        """From the daemon's last answer."""

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        timeout: float = ANSWER_TIMEOUT,
        accept: str = "",
    ) -> Any:  # noqa: ANN401
        """The JSON of the answer, or the error that the daemon answered with."""
        with self._connected(timeout) as (connection, answers):
            unsent = self._send(connection, method, path, query, body, accept)
            try:
                return self._content(_answer(answers))
            except (ConnectionError, ConnectionLost):
                # A small request is not refused for its size: the daemon is ending.
                if unsent < _MUCH:
                    raise
                raise BadInput("Legion refused this request before it had read all of it; send less at once.") from None

    def follow(self, path: str, *, query: Query | None = None, silence: float = 60.0) -> Iterator[Any]:
        """The data of server-sent events as they come; None for each heartbeat between them."""
        with self._connected(silence) as (connection, answers):
            self._send(connection, "GET", path, query, None)
            answer = _answer(answers)
            if answer.status != 200:
                self._content(answer)
            for line in answer.body:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])
                elif line.startswith(b":"):
                    yield None

    @contextlib.contextmanager
    def _connected(self, timeout: float) -> Iterator[tuple[socket.socket, BinaryIO]]:
        address = self.address
        try:
            with _connect(address, timeout) as connection, connection.makefile("rb") as answers:
                yield connection, answers
        except TimeoutError:
            raise Retryable(f"Legion at {address} did not answer in {timeout:.0f} s; read its daemon.log.") from None
        except (FileNotFoundError, ConnectionRefusedError):
            raise NotRunning(f"Legion is not running at {address}; `legion up` starts it.") from None
        except (ConnectionError, ConnectionLost):
            raise Unanswered(f"Legion at {address} went away in the middle of an answer; try again.") from None
        except NotHttp:
            raise LegionError(f"What answers at {address} is not Legion; check LEGION_URL or the port.") from None
        except OSError as error:
            raise Retryable(f"Legion at {address} cannot be reached: {error.strerror or error}.") from None

    def _send(
        self, connection: socket.socket, method: str, path: str, query: Query | None, body: object, accept: str = ""
    ) -> int:
        """0, or the size of what may not have gone out."""
        host = "localhost" if self.address.socket is not None else _host_header(self.address)
        headers = {"Host": host, "Authorization": f"Bearer {self.address.token}"}
        if self.address.session:
            headers["Legion-Session"] = self.address.session
        if accept:
            headers["Accept"] = accept
        content = b""
        if body is not None:
            content = json.dumps(body, default=vars).encode()
            headers["Content-Type"] = "application/json"
        if method != "GET":
            headers["Content-Length"] = str(len(content))
        lines = [f"{method} {path}{_query_string(query)} HTTP/1.0", *(f"{k}: {v}" for k, v in headers.items())]
        # The daemon may refuse early, for example a body that is too big; its answer says why.
        try:
            connection.sendall("\r\n".join([*lines, "", ""]).encode("latin-1") + content)
        except (BrokenPipeError, ConnectionResetError):
            return len(content)
        return 0

    def _content(self, answer: HttpAnswer) -> Any:  # noqa: ANN401
        raw = answer.read()
        self.daemon_version = answer.headers.get("legion-version", "")
        try:
            content = json.loads(raw)
        except ValueError:
            content = None
        if not self.daemon_version or content is None:
            raise LegionError(f"What answers at {self.address} is not Legion; check LEGION_URL or the port.")
        if answer.status >= 400:
            error = error_of(content)
            if self.daemon_version != __version__ and UNKNOWN in error.message:
                raise OtherVersion(self.daemon_version)
            raise error
        return content


def _release(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


def _connect(address: DaemonAddress, timeout: float) -> socket.socket:
    if address.socket is None:
        return socket.create_connection((address.host, address.port), timeout)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        connection.connect(address.socket)
    except BaseException:
        connection.close()
        raise
    return connection


def _host_header(address: DaemonAddress) -> str:
    return f"[{address.host}]:{address.port}" if ":" in address.host else f"{address.host}:{address.port}"


def _answer(body: BinaryIO) -> HttpAnswer:
    """Read the head; the body is what follows until the connection ends."""
    parts = _head_line(body).split(" ", 2)
    if len(parts) < 2 or not parts[0].startswith("HTTP/") or not parts[1].isdigit():
        raise NotHttp
    headers: dict[str, str] = {}
    while line := _head_line(body):
        name, colon, value = line.partition(":")
        if not colon or len(headers) > _MOST_HEADERS:
            raise NotHttp
        headers[name.strip().lower()] = value.strip()
    return HttpAnswer(int(parts[1]), headers, body)


def _head_line(body: BinaryIO) -> str:
    line = body.readline(_LONGEST_HEAD_LINE)
    if not line:
        raise ConnectionLost
    if not line.endswith(b"\n"):
        raise NotHttp
    return line.decode("latin-1").rstrip("\r\n")


def _query_string(query: Query | None) -> str:
    if not query:
        return ""
    # A request without a query, such as dispatch, starts faster without this.
    from urllib.parse import urlencode  # noqa: PLC0415

    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        if isinstance(value, list):
            pairs += [(name, str(item)) for item in value]
        elif isinstance(value, bool):
            pairs.append((name, str(value).lower()))
        elif value is not None:
            pairs.append((name, str(value)))
    return f"?{urlencode(pairs)}" if pairs else ""
