#!/bin/sh
# Provides promtool for the tests, and prints its path. If it is missing on a Debian-family system, the package prometheus is unpacked
# into .cache/promtool: it would start a server if it were installed. LMCADDY_PROMTOOL names another.
set -eu

cache=$(cd "$(dirname "$0")/.." && pwd)/.cache/promtool

# program prints the path.
program() {
	if [ -n "${LMCADDY_PROMTOOL:-}" ]; then
		echo "$LMCADDY_PROMTOOL"
	elif command -v promtool; then
		return
	elif [ -x "$cache/promtool" ]; then
		echo "$cache/promtool"
	else
		return 1
	fi
}

# unpack downloads the package and keeps the one program of it.
unpack() {
	rm -rf "$cache"
	mkdir -p "$cache/packages"
	cd "$cache/packages"
	apt-get download -qq prometheus || { apt-get update -qq && apt-get download -qq prometheus; }
	dpkg-deb -x ./*.deb .
	mv usr/bin/promtool "$cache/promtool"
	rm -r "$cache/packages"
}

if ! program >/dev/null; then
	if ! command -v apt-get >/dev/null; then
		echo "the tests need promtool: install Prometheus, or set LMCADDY_PROMTOOL to its promtool" >&2
		exit 1
	fi
	unpack >&2
fi
program
