"""Commands that show the board: status, graph, events, usage, inbox."""
