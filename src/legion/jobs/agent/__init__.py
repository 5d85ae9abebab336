"""The equipment of an agent: its program, briefing, tools, rights and access to a model."""
