"""One request to the daemon over its unix socket or TCP: JSON in, JSON out, a Problem as the error it was."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from legion import __version__
from legion.wire.errors import LegionError, TryAgain, error_of

Query = Mapping[str, str | int | float | bool | list[int] | None]

ANSWER_TIMEOUT = 600.0
"""Making a hub of a large repository takes a while; a daemon that died is noticed at once anyway."""


class NotRunning(TryAgain):
    """Nobody listens there, or the line broke before the answer came."""


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a daemon listens and what it wants to hear. The socket is taken where there is one."""

    socket: str | None = None
    host: str = "127.0.0.1"
    port: int = 0
    token: str

    def __str__(self) -> str:
        return self.socket or f"http://{self.host}:{self.port}"


class _OverSocket(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Line:
    """Asks one daemon. Each request is a connection of its own, so it may be used from any thread."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.daemon_version = __version__
        """As the daemon's last answer said."""

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        timeout: float = ANSWER_TIMEOUT,
    ) -> Any:  # noqa: ANN401
        """The JSON of the answer, or the error that the daemon answered with."""
        with self._connected(timeout) as connection:
            answer = self._send(connection, method, path, query, body)
            return self._content(answer)

    def follow(self, path: str, *, query: Query | None = None, silence: float = 60.0) -> Iterator[Any]:
        """The data of server-sent events as they come; None for each sign of life between them."""
        with self._connected(silence) as connection:
            answer = self._send(connection, "GET", path, query, None)
            if answer.status != 200:
                self._content(answer)
            for line in answer:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])
                elif line.startswith(b":"):
                    yield None

    @contextlib.contextmanager
    def _connected(self, timeout: float) -> Iterator[http.client.HTTPConnection]:
        address = self.address
        connection: http.client.HTTPConnection
        if address.socket is not None:
            connection = _OverSocket(address.socket, timeout)
        else:
            connection = http.client.HTTPConnection(address.host, address.port, timeout=timeout)
        try:
            yield connection
        except TimeoutError:
            raise TryAgain(
                f"Legion at {address} did not answer in {timeout:.0f} s; look into its daemon.log."
            ) from None
        except (FileNotFoundError, ConnectionRefusedError):
            raise NotRunning(f"Legion is not running at {address}; `legion up` starts it.") from None
        except (ConnectionError, http.client.IncompleteRead, http.client.RemoteDisconnected):
            raise NotRunning(f"Legion at {address} went away in the middle of an answer; try again.") from None
        except http.client.HTTPException:
            raise LegionError(f"What answers at {address} is not Legion; look at LEGION_URL or the port.") from None
        except OSError as error:
            raise TryAgain(f"Legion at {address} cannot be reached: {error.strerror or error}.") from None
        finally:
            connection.close()

    def _send(
        self, connection: http.client.HTTPConnection, method: str, path: str, query: Query | None, body: object
    ) -> http.client.HTTPResponse:
        headers = {"Authorization": f"Bearer {self.address.token}", "Connection": "close"}
        content = None
        if body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(body, default=vars).encode()
        target = quote(path) + _query_string(query)
        # The daemon may refuse early, for example a body that is too big; its answer says why.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.request(method, target, content, headers)
        return connection.getresponse()

    def _content(self, answer: http.client.HTTPResponse) -> Any:  # noqa: ANN401
        raw = answer.read()
        self.daemon_version = answer.getheader("Legion-Version", "")
        try:
            content = json.loads(raw)
        except ValueError:
            content = None
        if not self.daemon_version or content is None:
            raise LegionError(f"What answers at {self.address} is not Legion; look at LEGION_URL or the port.")
        if answer.status >= 400:
            raise error_of(content["code"], content["message"])
        return content


def _query_string(query: Query | None) -> str:
    words: list[tuple[str, str]] = []
    for name, value in (query or {}).items():
        if isinstance(value, list):
            words += [(name, str(item)) for item in value]
        elif isinstance(value, bool):
            words.append((name, str(value).lower()))
        elif value is not None:
            words.append((name, str(value)))
    return f"?{urlencode(words)}" if words else ""
