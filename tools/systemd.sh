#!/bin/sh
# Provides systemd-analyze for the tests of units, and prints its path. If it is missing on a Debian-family system, root installs
# the package; other users unpack it into .cache/systemd.
set -eu

cache=$(cd "$(dirname "$0")/.." && pwd)/.cache/systemd

if command -v systemd-analyze; then
	exit 0
fi
if ! command -v apt-get >/dev/null; then
	echo "the tests of systemd's units need systemd-analyze" >&2
	exit 1
fi
if [ "$(id -u)" = 0 ]; then
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq >/dev/null
	apt-get install -y -qq --no-install-recommends systemd >/dev/null
	command -v systemd-analyze
	exit 0
fi
if ! [ -x "$cache/systemd-analyze" ]; then
	rm -rf "$cache"
	mkdir -p "$cache/packages"
	(
		cd "$cache/packages"
		apt-get download -qq systemd libsystemd-shared >&2
		for each in *.deb; do
			dpkg-deb -x "$each" "$cache"
		done
	)
	cat >"$cache/systemd-analyze" <<END
#!/bin/sh
export LD_LIBRARY_PATH="$(printf %s: "$cache"/usr/lib/*-linux-*/systemd)"
exec "$(ls "$cache/bin/systemd-analyze" "$cache/usr/bin/systemd-analyze" 2>/dev/null | head -n 1)" "\$@"
END
	chmod +x "$cache/systemd-analyze"
fi
echo "$cache/systemd-analyze"
