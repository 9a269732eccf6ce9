#!/bin/sh
# Installs the client libraries that the end-to-end tests run, into the folder that is named; those of another folder of the
# end-to-end tests, if that is named after it. Node.js is needed for it; on a Debian-family system it is installed if it is
# missing and if we may.
set -eu

into=$1
from=$(dirname "$0")/../e2e/${2:-clients}

if ! { command -v node && command -v npm; } >/dev/null; then
	if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
		echo "node and npm are needed to test with the official client libraries (Debian: apt-get install nodejs npm)" >&2
		exit 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq >/dev/null
	apt-get install -y -qq --no-install-recommends nodejs npm >/dev/null
fi
if cmp -s "$from/package-lock.json" "$into/installed"; then
	exit 0
fi
mkdir -p "$into"
rm -f "$into/installed"
cp "$from/package.json" "$from/package-lock.json" "$into/"
(cd "$into" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
cp "$into/package-lock.json" "$into/installed"
