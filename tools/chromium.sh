#!/bin/sh
# Provides Chromium for the tests of the page, and prints its path. If there is none on a Debian-family system, root installs it.
set -eu

find() {
	if [ -n "${LMCADDY_CHROMIUM:-}" ]; then
		echo "$LMCADDY_CHROMIUM"
		return
	fi
	command -v chromium || command -v chromium-browser || command -v google-chrome
}

if ! find >/dev/null; then
	if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
		echo "the tests of the page need Chromium (Debian: apt-get install chromium), or LMCADDY_CHROMIUM with its path" >&2
		exit 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq >/dev/null
	apt-get install -y -qq --no-install-recommends chromium >/dev/null
fi
find
