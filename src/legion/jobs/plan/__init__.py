"""The plan job: a planner reads the repository and answers with a plan, which is checked."""
