#!/bin/sh
# Usage: mlx.sh LMCADDY HOME
#
# Runs the contract of the fake mlx_lm.server, and the end-to-end tests over each engine, against a real one: the command in
# LMCADDY_MLX_COMMAND, or else mlx_lm.server on PATH, or else one that LMCADDY installs in the folder HOME, where llama-server is, too.
set -eu

lmcaddy=$1
home=$2

if [ -z "${LMCADDY_MLX_COMMAND:-}" ] && command -v mlx_lm.server >/dev/null; then
	LMCADDY_MLX_COMMAND=$(command -v mlx_lm.server)
fi
if [ -z "${LMCADDY_MLX_COMMAND:-}" ]; then
	LMCADDY_HOME=$home "$lmcaddy" runtime get mlx-lm --if-missing
	for python in "$home"/runtimes/mlx-lm-*/bin/python3; do
		LMCADDY_MLX_COMMAND="$python -m mlx_lm server"
	done
fi
export LMCADDY_MLX_COMMAND
echo "mlx_lm.server is $LMCADDY_MLX_COMMAND"

go test -count 1 -v -parallel 1 -timeout 30m -run Contract ./internal/testing/fakemlx

# The tests that call eachEngine or overEngines
tests=$(awk '/^func Test/ { name = $2; sub(/\(.*/, "", name) } /(eachEngine|overEngines)\(t, / && name { print name; name = "" } /^}/ { name = "" }' \
	e2e/*_test.go | sort -u | paste -sd '|' -)
cd e2e
LMCADDY_BIN="$lmcaddy" LMCADDY_RUNTIMES="$home/runtimes" \
	go test -p 1 -count 1 -v -timeout 60m -run "^TestMLX|^($tests)\$/^mlx_lm\$" .
