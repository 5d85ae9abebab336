#!/bin/sh
# Prints how many test processes suit this machine: seven for two cores, since each uses less than a third of one,
# and 2 GB of memory for each. `test-workers.sh 2`: so many for two cores, for tests that do not wait.
set -eu
cores=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
if [ -r /proc/meminfo ]; then
    gigabytes=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
else
    gigabytes=$(($(sysctl -n hw.memsize 2>/dev/null || echo 4294967296) / 1073741824))
fi
workers=$((cores * ${1:-7} / 2))
[ "$workers" -le $((gigabytes / 2)) ] || workers=$((gigabytes / 2))
[ "$workers" -ge 1 ] || workers=1
echo "$workers"
