"""The terminal UI: a client like any other, on Textual. It sees `client` and `wire` only; no other imports Textual.

- `link` is the connection: its state (connecting, live, slow, gone, back) as pure code, requests in threads with time
  limits, the stream of events.
- `store` holds what the daemon has answered, as feeds. An event makes the feeds that it concerns fetch again, where a
  screen watches them. Nothing polls; only what the agents at work print comes by one long poll.
- `views` are pure functions to rows of text that only screens have. Answers become rows in `client/text`, as they do
  for commands; text from outside passes `sanitize` there, and in `Row`.
- `keys` is the key map as data: bindings, footer, help and menu are made from it.
- `widgets` draw rows; `screens` put them together and act on keys.
- `drafts` keeps everything that was typed and not sent, so that the UI can be killed at any moment.
- `start` paints before Textual is imported.
"""
