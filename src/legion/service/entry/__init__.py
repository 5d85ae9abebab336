"""Callers and their rights: the person, agents, tools, legion_cc."""
