#!/bin/sh
# Usage: clock.sh BINARY
#
# Builds an lmcaddy whose clock is off by as many seconds as the environment variable LMCADDY_TEST_CLOCK says: Go's clock can't be changed from
# outside. Everything is built anew, which takes minutes the first time.
set -eu

binary=$1
root=$(cd "$(dirname "$0")/.." && pwd)
goroot=$(go env GOROOT)
into="$root/.cache/clock"
mkdir -p "$into" "$(dirname "$binary")"
sed '/^func Now() Time {/,/^}/s/^\(\tsec, nsec, mono := runtimeNow()\)$/\1\n\tsec += testOffset/' "$goroot/src/time/time.go" > "$into/time.go"
grep -q testOffset "$into/time.go"
cat > "$into/offset.go" <<'END'
package time

import "syscall"

// testOffset is by how many seconds the clock is off.
var testOffset = func() int64 {
	text, _ := syscall.Getenv("LMCADDY_TEST_CLOCK")
	n, _ := atoi(text)
	return int64(n)
}()
END
printf '{"Replace": {"%s/src/time/time.go": "%s/time.go", "%s/src/time/offset.go": "%s/offset.go"}}' "$goroot" "$into" "$goroot" "$into" > "$into/overlay.json"
cd "$root"
CGO_ENABLED=0 go build -overlay "$into/overlay.json" -trimpath -buildvcs=false -tags nobadger,nomysql,nopgx -o "$binary" ./cmd/lmcaddy
