"""The choice of a reply: the script, the step, and random errors; and recordings as scripts."""
