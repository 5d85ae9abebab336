#!/bin/sh
# Installs the locked tools for the page's format and types into .venv/page, where `tools/page/check.sh` finds them.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$root/.venv/page
echo "Installing the locked tools for the page into .venv/page"
mkdir -p "$folder"
cp "$root/tools/page/package.json" "$root/tools/page/package-lock.json" "$folder"
PATH=$root/.venv/bin:$PATH
npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund --no-update-notifier --silent
# The libraries of the page are minified: instead of them, TypeScript reads what they declare.
ln -sfn "$root/src/legion/web/static/app" "$folder/app"
ln -sfn "$root/tools/page/vendor" "$folder/vendor"
