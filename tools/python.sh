#!/bin/sh
# Runs Python 3 with NumPy and Jinja, for the tests of tools/tinymodel. If they are missing on a Debian-family system, root
# installs them. Otherwise the tests are left out with a message; in CI that is an error.
set -eu

fit() { "$1" -c 'import numpy, jinja2' 2>/dev/null; }

pick() {
	for python in python3 /usr/bin/python3; do
		if fit "$python"; then
			exec "$python" "$@"
		fi
	done
}

pick "$@"
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq >/dev/null
	apt-get install -y -qq --no-install-recommends python3 python3-numpy python3-jinja2 >/dev/null
	pick "$@"
fi
if [ -n "${CI:-}" ]; then
	echo "no Python 3 with NumPy and Jinja, and none could be installed" >&2
	exit 1
fi
echo "left out: the tests of tools/tinymodel need a Python 3 with NumPy and Jinja (Debian: apt-get install python3-numpy python3-jinja2)" >&2
