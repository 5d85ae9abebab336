"""Text that all clients show: terminal text, states of tickets, the drawing of the board."""
