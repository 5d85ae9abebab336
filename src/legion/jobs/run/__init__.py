"""The run job: an agent works on a ticket until its program ends."""
