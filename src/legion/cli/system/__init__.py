"""Commands about Legion itself: the daemon, the demo, completion, version."""
