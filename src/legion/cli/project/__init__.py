"""Commands about a project: init, trust, collect, worktrees, doctor, config."""
