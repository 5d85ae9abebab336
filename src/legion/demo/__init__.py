"""Plays with scripted replies: `legion demo` on a repository of its own, `legion rehearse` on the person's plan.

Both use Legion as a person does, through the client alone, with a folder, processes and settings of their own.
"""
