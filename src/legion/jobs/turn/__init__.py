"""One turn of a standing agent: its mail, its claimed ticket, its dismissal."""
