"""The gateway: a process of its own between agent programs and the model providers. It alone holds the real keys.

The daemon imports `folder`, `passes`, `provider`, `ledger` and `process`, which need nothing but the standard library.
"""
