"""A GitHub on loopback for `legion demo --forge` and for tests: the endpoints that Legion uses, in their real shapes.

`state.py` holds the repository's issues and pull requests, `shapes.py` writes them as GitHub does, `routes.py` answers
requests, and `server.py` is the HTTP server, with tokens, ETags, limits and pushes through `git http-backend`.
"""
