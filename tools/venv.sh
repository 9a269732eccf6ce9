#!/bin/sh
# Provides a Python that can make virtual environments, for the tests. If there is none on a Debian-family system, root installs it.
set -eu

for python in python3 /usr/bin/python3; do
	if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
		exit
	fi
done
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq >/dev/null
	apt-get install -y -qq --no-install-recommends python3 python3-venv >/dev/null
	exit
fi
echo "the tests need Python 3.10 or later with its module venv (Debian: apt-get install python3 python3-venv)" >&2
exit 1
