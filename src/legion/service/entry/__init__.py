"""Who calls, and what that caller may use: people, agents, tools, legion_cc."""
