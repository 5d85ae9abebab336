"""The link to the daemon: its state as pure code, requests in threads, the stream of events."""
