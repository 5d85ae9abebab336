"""Rows about standing agents: agents, mail, claimed tickets, tokens."""
