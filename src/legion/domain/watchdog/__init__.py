"""Whether a run makes progress, and what to do when it does not."""
