"""Runs: process trees that outlive the daemon, each in a sandbox, each with a folder that tells its story.

The daemon's side is `launch` (find, start, wait, stop); the other side is `host`, forked from `forkserver`. The room
knows programs, not tickets: agents and checks are the same to it.
"""
