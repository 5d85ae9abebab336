"""`python -m legion` is the command `legion`."""

from __future__ import annotations

from legion.cli.main import main

if __name__ == "__main__":
    main()
