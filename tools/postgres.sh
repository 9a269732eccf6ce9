#!/bin/sh
# Provides PostgreSQL for the tests, and prints the folder with initdb and postgres. If it is missing on a Debian-family system,
# root installs the package, without creating or starting a cluster; other users unpack it into .cache/postgres.
set -eu

cache=$(cd "$(dirname "$0")/.." && pwd)/.cache/postgres

# folder prints the folder of the newest version.
folder() {
	if [ -n "${LMCADDY_POSTGRES:-}" ]; then
		echo "$LMCADDY_POSTGRES"
		return
	fi
	for each in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort -rV) "$cache/bin"; do
		if [ -x "$each/initdb" ] && [ -x "$each/postgres" ]; then
			echo "$each"
			return
		fi
	done
	return 1
}

# install installs Debian's package, but keeps postgresql-common from creating and starting a cluster.
install() {
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq >/dev/null
	apt-get install -y -qq --no-install-recommends postgresql-common >/dev/null
	mkdir -p /etc/postgresql-common/createcluster.d
	echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/lmcaddy-tests.conf
	apt-get install -y -qq --no-install-recommends postgresql >/dev/null
}

# unpack unpacks the package and its missing dependencies, and wraps the programs so that they find their libraries.
unpack() {
	package=$(apt-cache depends postgresql | sed -n 's/^ *Depends: \(postgresql-[0-9]*\)$/\1/p')
	rm -rf "$cache"
	mkdir -p "$cache/packages" "$cache/bin"
	cd "$cache/packages"
	apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances "$package" |
		grep '^[a-z0-9]' | sort -u | while read -r needed; do
		if ! dpkg-query -W -f '${Status}' "$needed" 2>/dev/null | grep -q ' installed'; then
			apt-get download -qq "$needed" >&2 || true # some are virtual packages
		fi
	done
	for each in *.deb; do
		dpkg-deb -x "$each" "$cache"
	done
	rm -r "$cache/packages"
	for program in "$cache"/usr/lib/postgresql/*/bin/*; do
		cat >"$cache/bin/${program##*/}" <<END
#!/bin/sh
export LD_LIBRARY_PATH="$(printf %s: "$cache"/usr/lib/*-linux-*)\${LD_LIBRARY_PATH:-}"
exec "$program" "\$@"
END
		chmod +x "$cache/bin/${program##*/}"
	done
}

if ! folder >/dev/null; then
	if ! command -v apt-get >/dev/null; then
		echo "the tests need PostgreSQL: install it, and set LMCADDY_POSTGRES to the folder with initdb" >&2
		exit 1
	elif [ "$(id -u)" = 0 ]; then
		install
	else
		unpack >&2
	fi
fi
folder
