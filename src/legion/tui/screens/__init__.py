"""The places of the terminal UI, and the questions that appear on top of them."""
