"""The machinery of settings: declaring, reading and checking them."""
