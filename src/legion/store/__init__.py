"""The database: what is true, written with its event in one transaction.

A file per concept; its functions take the transaction first and return domain records. The room knows SQL and two
databases. It does not know git, processes, or the reason for a move.
"""
