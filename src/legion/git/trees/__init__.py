"""Folders of files: worktrees, the pool of warm trees, check trees, snapshots."""
