"""Writes the golden set again."""

from __future__ import annotations

import json

from tests.gateway.golden.kept import as_it_is, file

for name, cases in as_it_is().items():
    file(name).write_text(json.dumps(cases, indent=1, ensure_ascii=False) + "\n", "utf-8")
