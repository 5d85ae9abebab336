"""Other machines of the head: what is known of one, and when its lease ends."""
