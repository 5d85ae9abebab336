"""The options of `legion dispatch` for the quick parser, which cannot afford to import the fields of a ticket.

Written by `python -m tests.docs.test_ticket_fields`; do not edit. Each option: field, kind, choices or limits.
"""

OPTIONS: dict[str, tuple[str, str, tuple[str | int, ...]]] = {
    "-t": ("title", "text", ()),
    "--title": ("title", "text", ()),
    "-c": ("context", "text", ()),
    "--context": ("context", "text", ()),
    "-k": ("criteria", "text", ()),
    "--criteria": ("criteria", "text", ()),
    "-p": ("plan", "text", ()),
    "--plan": ("plan", "text", ()),
    "-a": ("after", "tickets", ()),
    "--after": ("after", "tickets", ()),
    "--files": ("files", "texts", ()),
    "--prove": ("prove", "texts", ()),
    "--accept": ("accept", "texts", ()),
    "--checkpoint": ("checkpoint", "flag", ()),
    "--epic": ("epic", "text", ()),
    "--priority": ("priority", "whole", (-1000, 1000)),
    "--driver": ("driver", "text", ()),
    "--team": ("team", "text", ()),
    "--branch": ("branch", "text", ()),
    "--retires": ("retires", "tickets", ()),
    "--alone": ("alone", "flag", ()),
    "--label": ("labels", "texts", ()),
    "--on": ("on", "texts", ()),
    "--command": ("command", "text", ()),
    "--model": ("model", "text", ()),
    "--max-attempts": ("max_attempts", "whole", (1, 20)),
    "--ask": ("ask", "flag", ()),
    "--plan-first": ("plan_first", "flag", ()),
    "--budget": ("budget", "amount", (0, 100000)),
    "--review": ("review", "text", ("off", "risky", "always")),
    "--gate": ("gate", "text", ("auto", "person", "risk")),
}
