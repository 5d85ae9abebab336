"""Who may ask for what, where it is sent, and with which key."""
