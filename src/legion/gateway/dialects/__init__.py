"""The dialects that models are spoken to in, and one inner form between them. No sockets, no files, no clock.

Each dialect has three files: `request`, `answer` and `stream`, reading and writing in each. `known` names them all.
"""
