"""The git program: looking at the person's repository, the hub, worktrees, snapshots, merging, collecting.

Knows commits and folders. Does not know tickets, runs or the store.
"""
