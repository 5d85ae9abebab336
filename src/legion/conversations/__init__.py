"""Conversations of the person's own agent programs, and of Legion's runs: found, read, indexed and searched.

The files belong to other programs and are only read. The index is a SQLite file that can be made again at any time.
"""
