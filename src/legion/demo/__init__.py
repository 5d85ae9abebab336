"""The demo: the whole job on a scratch repository, played by scripts instead of agent programs.

It uses Legion as a person does, through the client alone, with a folder, a daemon and settings of its own.
"""
