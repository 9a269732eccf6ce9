#!/bin/sh
# Usage: node.sh INTO [FROM]
#
# Installs the libraries or programs of e2e/FROM (default: clients) into the folder INTO. This needs Node.js; on a Debian-family
# system, root installs it if it is missing.
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
