"""Use cases about leaders: notes, the conversation with one."""
