"""What the gateway is measured with, each a process of its own: a provider, at once or slow, and a bare relay.

`python -m bench.relay provider` and `python -m bench.relay relay URL` print the port that they listen on.
"""

from __future__ import annotations

import asyncio
import sys

import aiohttp
from aiohttp import web

EVENTS = 59
SLOW_EVENTS = 200
PACE = 0.02
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_END = b"0\r\n\r\n"
_DROPPED = ("host", "content-length", "transfer-encoding", "connection")


def _event(text: bytes) -> bytes:
    data = b"event: x\ndata: " + text + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(data), data)


_START = _event(b'{"type":"message_start","message":{"model":"claude-sonnet-4-5","usage":{"input_tokens":9000}}}')
_TEXT = _event(b'{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some words of it"}}')
_LAST = _event(b'{"type":"message_delta","usage":{"output_tokens":99}}') + _event(b'{"type":"message_stop"}')
_WHOLE = _HEAD + _START + _TEXT * (EVENTS - 3) + _LAST + _END


def _chunk(choices: bytes, more: bytes = b"") -> bytes:
    data = b'data: {"id":"c","object":"chat.completion.chunk","model":"qwen3","choices":[%s]%s}\n\n' % (choices, more)
    return b"%x\r\n%s\r\n" % (len(data), data)


_CHAT_TEXT = _chunk(b'{"index":0,"delta":{"content":"some words of it"},"finish_reason":null}')
_CHAT_LAST = _chunk(b'{"index":0,"delta":{},"finish_reason":"stop"}')
_CHAT_LAST += _chunk(b"", b',"usage":{"prompt_tokens":9000,"completion_tokens":99}') + b"e\r\ndata: [DONE]\n\n\r\n"
_CHAT_WHOLE = _HEAD + _CHAT_TEXT * (EVENTS - 3) + _CHAT_LAST + _END


class Provider(asyncio.Protocol):
    """Answers in one write, or one event at a time where the path says slow."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        self._rest += data
        head, mark, rest = self._rest.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
        if not mark or len(rest) < length:
            return
        self._rest = rest[length:]
        asked = head.split(b"\r\n")[0]
        chat = b"/chat/completions" in asked
        if b"slow" in asked:
            self._transport.write(_HEAD + (b"" if chat else _START))
            self._go_on(SLOW_EVENTS, chat)
        else:
            self._transport.write(_CHAT_WHOLE if chat else _WHOLE)

    def _go_on(self, left: int, chat: bool) -> None:
        if left:
            self._transport.write(_CHAT_TEXT if chat else _TEXT)
            asyncio.get_running_loop().call_later(PACE, self._go_on, left - 1, chat)
        else:
            self._transport.write((_CHAT_LAST if chat else _LAST) + _END)


async def _provide() -> None:
    server = await asyncio.get_running_loop().create_server(Provider, "127.0.0.1", 0, backlog=256)
    _say(server.sockets[0].getsockname()[1])
    await server.serve_forever()


async def _relay(url: str) -> None:
    async with aiohttp.ClientSession(auto_decompress=False, connector=aiohttp.TCPConnector(limit=0)) as session:

        async def handle(request: web.Request) -> web.StreamResponse:
            headers = {name: value for name, value in request.headers.items() if name.lower() not in _DROPPED}
            body = await request.read()
            async with session.request(request.method, url + request.path_qs, data=body, headers=headers) as upstream:
                kept = {name: value for name, value in upstream.headers.items() if name.lower() not in _DROPPED}
                answer = web.StreamResponse(status=upstream.status, headers=kept)
                await answer.prepare(request)
                async for piece in upstream.content.iter_any():
                    await answer.write(piece)
                await answer.write_eof()
                return answer

        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, backlog=256).start()
        _say(runner.addresses[0][1])
        await asyncio.Event().wait()


def _say(port: int) -> None:
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_provide() if sys.argv[1] == "provider" else _relay(sys.argv[2]))
