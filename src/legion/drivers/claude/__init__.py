"""Claude Code as an agent: driven through its own SDK, held in by our runner.

Only `driver`, `talk` and `transport` import the SDK, and only runners import those.
"""
