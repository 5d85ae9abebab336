"""Use cases about standing agents: hire, mail, claim, plans."""
