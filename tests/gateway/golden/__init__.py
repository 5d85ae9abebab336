"""The golden set: the translation of each request and answer into each dialect, reviewed once by a person and stored.

`python -m tests.gateway.golden` writes it anew; the difference is there to be read.
"""
