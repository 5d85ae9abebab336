"""What an agent is given: its program, briefing, tools, rights and access to a model."""
