#!/bin/sh
# Runs a command with its temporary files in memory, and removes them afterwards. Tests make and delete so many small
# files that a disk doubles their time. Where TMPDIR is set, or memory has no 4 GB for that, or allows no programs to
# run there, the command runs with the usual temporary folder.
set -eu
memory=/dev/shm
if [ -n "${TMPDIR:-}" ] || [ ! -w "$memory" ]; then exec "$@"; fi
free=$(df -Pk "$memory" | awk 'NR == 2 { print int($4 / 1048576) }')
available=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
if [ "$free" -lt 4 ] || [ "$available" -lt 8 ]; then exec "$@"; fi
folder=$(mktemp -d "$memory/legion-tests.XXXXXX")
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM HUP
printf '#!/bin/sh\n' > "$folder/runs"
chmod +x "$folder/runs"
if "$folder/runs" 2>/dev/null; then export TMPDIR="$folder"; fi
"$@"
