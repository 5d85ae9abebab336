#!/bin/sh
# Makes the virtual environment from the locked dependencies and installs the package into it, editable.
# Usage: make-venv.sh PYTHON FOLDER
set -eu
python=$1
folder=$2

fail() {
    echo "$1" >&2
    exit 1
}

command -v "$python" >/dev/null || fail "$python is not installed: install Python 3.11 or newer, or name one with make PYTHON=..."
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$python is Python $version, Legion needs 3.11 or newer: name another one with make PYTHON=..."

# An environment whose Python is gone or another one is made anew.
if ! "$folder/bin/python" -c "import sys, pip; sys.exit('%d.%d' % sys.version_info[:2] != '$version')" 2>/dev/null; then
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        "$(dirname "$0")/system-packages.sh" "python$version-venv"
        "$python" -c 'import ensurepip, venv' 2>/dev/null ||
            fail "$python cannot make virtual environments: install python$version-venv."
    fi
    echo "Making $folder with Python $version"
    "$python" -m venv --clear "$folder"
fi

echo "Installing the locked dependencies into $folder"
# The lock names every package. Without --no-deps, pip looks for the newest version of what a package needs
# with an extra (psycopg[pool]), and refuses the lock once there is a newer one.
"$folder/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
# The build backend is locked too, so nothing is fetched here.
"$folder/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -e .
