"""The gateway: a proxy process between agent programs and model providers, the only process that holds real keys.

The modules that the daemon imports need only the standard library: `files`, `lifecycle`, `access.provider`,
`access.routing`, `accounting.ledger`, `accounting.activity` and `recording.tape`.
"""
