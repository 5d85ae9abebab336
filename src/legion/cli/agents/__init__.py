"""Commands about standing agents, teams and roles."""
