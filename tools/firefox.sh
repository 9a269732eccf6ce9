#!/bin/sh
# Provides Firefox for a test of the page, and prints its path. If there is none on a Debian-family system, root installs it.
set -eu

find() {
	command -v firefox-esr || command -v firefox
}

if ! find >/dev/null; then
	if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
		echo "a test of the page needs Firefox (Debian: apt-get install firefox-esr)" >&2
		exit 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq >/dev/null
	apt-get install -y -qq --no-install-recommends firefox-esr >/dev/null
fi
find
