"""The terminal UI: a client like any other, on Textual. It sees `client` and `wire` only; no other imports Textual.

- `link` is the connection: its state (connecting, live, slow, gone, back) as pure code, requests in threads with time
  limits, the stream of events.
- `store` holds what the daemon has answered, as feeds. An event makes the feeds that it concerns fetch again, where a
  screen watches them. Nothing polls; only what the agents at work print comes by one long poll.
- `views` are pure functions from answers to rows of text. Text from outside passes `sanitize` here and nowhere else.
- `keys` is the key map as data: bindings, footer, help and menu are made from it.
- `widgets` draw rows; `screens` put them together and act on keys. `plain` prints the same views by lines.
- `drafts` keeps everything that was typed and not sent, so that the UI can be killed at any moment.
- `start` paints before Textual is imported.
"""
