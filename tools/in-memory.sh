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
# A short name: the path of a socket has at most 107 letters. Postgres, another user, must be able to enter it.
for folder in "$memory"/L1 "$memory"/L2 "$memory"/L3 ""; do
    if [ -z "$folder" ]; then exec "$@"; fi
    if mkdir -m 755 "$folder" 2>/dev/null; then break; fi
done
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM HUP
printf '#!/bin/sh\n' > "$folder/runs"
chmod +x "$folder/runs"
if "$folder/runs" 2>/dev/null; then export TMPDIR="$folder"; fi
"$@"
