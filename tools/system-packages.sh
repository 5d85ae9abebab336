#!/bin/sh
# Installs Debian packages that are missing, where it may (root, apt-get); otherwise says in one line what is missing.
# That is a failure only in CI: everything that needs them says so itself.
# Usage: system-packages.sh PACKAGE...
set -eu

present() {
    case $1 in
    bubblewrap) command -v bwrap >/dev/null ;;
    chromium) for name in chromium-headless-shell chromium chromium-browser; do command -v $name && return; done >/dev/null ;;
    postgresql) ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null ;;
    *) dpkg -s "$1" >/dev/null 2>&1 ;;
    esac
}

# Chromium without windows loads a page with a quarter of the CPU; some distributions have only the other.
installable() {
    for package in "$@"; do
        if [ "$package" = chromium ] && apt-cache show chromium-headless-shell >/dev/null 2>&1; then
            package=chromium-headless-shell
        fi
        echo "$package"
    done
}

missing=
for package in "$@"; do
    present "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing$missing"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2046,SC2086  # lists of words on purpose
    if apt-get -qq update && apt-get -qq install -y --no-install-recommends $(installable $missing) >/dev/null; then
        exit 0
    fi
fi
echo "Missing:$missing. Install it with your package manager; what needs it is left out until then." >&2
[ "${CI:-}" != true ]
