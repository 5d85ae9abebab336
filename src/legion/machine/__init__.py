"""The worker on a machine: dials in to the head, runs its jobs in worktrees of its own, and sends the results back."""
