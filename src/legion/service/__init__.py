"""Use cases: one function per thing a person or an agent can ask for. Knows nothing of HTTP or terminals."""
