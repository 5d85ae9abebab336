"""Standing agents: rights, teams, mail, tools."""
