"""Legion turns a goal into verified, landed code by a squad of coding agents."""

__version__ = "0.2.0"
