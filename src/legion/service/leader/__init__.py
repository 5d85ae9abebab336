"""Use cases about leaders: notes, lessons, routines, the conversation with one."""
