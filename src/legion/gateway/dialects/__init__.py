"""The APIs of model providers as dialects of one common form (`messages`). Pure functions: no sockets, files or clock.

Each dialect has three modules, `request`, `answer` and `stream`, each of which reads and writes. `registry` lists them.
"""
