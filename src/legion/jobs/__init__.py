"""The work itself: run, check, land.

Each job may be cut off anywhere and started again: it adopts or does, never just does.
"""
