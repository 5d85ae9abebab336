"""The page of `legion web`: plain files that a browser loads as they are. Nothing here is built or bundled."""

from __future__ import annotations

from pathlib import Path

STATIC = Path(__file__).parent / "static"
