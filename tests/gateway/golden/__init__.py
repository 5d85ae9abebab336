"""The golden set: what each request and each answer becomes in each dialect, looked at once by a person and kept.

`python -m tests.gateway.golden` writes it anew; the difference is there to be read.
"""
