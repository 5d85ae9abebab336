"""The database and nothing else: what is true, written with its event in one transaction.

A file per concept; its functions take the transaction first and answer with domain records. The room knows
SQL and two databases. It does not know git, processes, or why anybody wants a ticket moved.
"""
