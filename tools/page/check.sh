#!/bin/sh
# Checks the format and the types of the page, in seconds. With --write it formats the files first.
set -eu
cd "$(dirname "$0")/../.."
tools=.venv/page/node_modules
.venv/bin/node $tools/prettier/bin/prettier.cjs --config tools/page/prettier.json --ignore-path tools/page/ignored \
    --log-level warn "${1:---check}" src/legion/web/static tests/web/modules
.venv/bin/node $tools/typescript/bin/tsc --project tools/page/tsconfig.json
