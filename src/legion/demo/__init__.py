"""Runs with a scripted model: `legion demo` on a sample repository, `legion plan rehearse` on the person's own plan.

Both use Legion only through its client, with a folder, processes and settings of their own.
"""
