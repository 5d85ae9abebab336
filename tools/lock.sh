#!/bin/sh
# Writes both lock files: exact versions with hashes, valid for every supported Python and system.
# A version younger than a week is left out: a stolen release is mostly found by then.
# Usage: lock.sh UV
set -eu
uv=$1

compile() {
    output=$1
    shift
    "$uv" pip compile --quiet --universal --python-version 3.11 --upgrade --exclude-newer "7 days" --generate-hashes --no-strip-extras \
        --no-header --no-annotate --no-emit-index-url --extra postgres "$@" --output-file "$output" pyproject.toml >/dev/null
    echo "Wrote $output"
}

compile requirements.lock --group build
compile requirements-dev.lock --group dev --constraint requirements.lock
