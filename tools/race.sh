#!/bin/sh
# Runs go test with the race detector, which needs a C compiler. If it is missing on a Debian-family system, root installs
# one. Otherwise the tests run without it, with a message; in CI that is an error.
set -eu

has_compiler() { command -v "$(go env CC)" >/dev/null; }

if ! has_compiler && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq >/dev/null
	apt-get install -y -qq --no-install-recommends gcc libc6-dev >/dev/null
fi
if has_compiler; then
	# The fakes are processes that many tests start: as programs without the race detector they start several times as fast.
	LMCADDY_FAKES="$PWD/.cache/fakes"
	export LMCADDY_FAKES
	mkdir -p "$LMCADDY_FAKES"
	CGO_ENABLED=0 go build -o "$LMCADDY_FAKES/llama-server" ./tools/fakeengine
	CGO_ENABLED=0 go build -o "$LMCADDY_FAKES/mlx_lm.server" ./internal/testing/fakemlx/program
	# By default, each program with the detector sleeps for a second at its end.
	GORACE="atexit_sleep_ms=0 ${GORACE:-}"
	export GORACE
	# SQLite, which was translated from C, is five times as fast without the detector. It guards itself with the locks of sync.
	# Other packages can't be left out: what they use of generic types, such as sync.Map, would be linked in everywhere without it, and
	# then locks aren't seen.
	# Most tests wait: for fake engines, for deadlines. Those of the API take as long as all others one after another.
	CGO_ENABLED=1 exec go test -race -gcflags=modernc.org/...=-race=false -p 3 -parallel 6 -timeout 60m "$@"
fi
if [ -n "${CI:-}" ]; then
	echo "no C compiler for the race detector, and none could be installed" >&2
	exit 1
fi
echo "without the race detector, which needs a C compiler (Debian: apt-get install gcc libc6-dev)" >&2
exec go test -timeout 60m "$@"
