#!/bin/sh
# Usage: lavapipe.sh [driver]
#
# Provides a second and a third device to compute on, without a GPU: llama-server with its Vulkan backend, and Mesa's lavapipe, a Vulkan
# device that the processor computes. Prints what a test must set, as NAME=value. If there is no lavapipe on a Debian-family system, root installs it. The
# runtime is in a home of its own, .cache/lavapipe, as bin/lmcaddy, or $LMCADDY_BIN, gets it from Debian's packages. With "driver", only lavapipe is
# installed.
#
# GGML_VK_VISIBLE_DEVICES=0 makes one device, Vulkan0, and 0,0 makes two, Vulkan0 and Vulkan1, of 2 GiB each. Without it, llama-server leaves
# devices on the processor out. Free memory is always 2 GiB, whatever is loaded.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
home=$root/.cache/lavapipe
bin=${LMCADDY_BIN:-$root/bin/lmcaddy}

# driver prints the file that names lavapipe to Vulkan's loader.
driver() {
	for file in /usr/share/vulkan/icd.d/lvp_icd*.json; do
		if [ -f "$file" ]; then
			echo "$file"
			return
		fi
	done
	return 1
}

# engine prints the llama-server in the home.
engine() {
	for file in "$home"/runtimes/llama.cpp-*-vulkan/bin/llama-server; do
		if [ -x "$file" ]; then
			echo "$file"
			return
		fi
	done
	return 1
}

# compile makes Mesa compile what tinychat needs, which takes half a minute on an idle machine: each test would do it otherwise. It is kept in the
# home's cache/engines.
compile() {
	mkdir -p "$home/models/lmcaddy"
	ln -sfn "$root/testdata/models/lmcaddy/tinychat" "$home/models/lmcaddy/tinychat"
	"$bin" serve --listen 127.0.0.1:0 >"$home/serve.log" 2>&1 &
	server=$!
	trap 'kill "$server" 2>/dev/null || true' EXIT
	until "$bin" status >/dev/null 2>&1; do
		kill -0 "$server" 2>/dev/null || { cat "$home/serve.log" >&2; exit 1; }
		sleep 0.2
	done
	# On a busy machine, an engine that compiles for half a minute counts as hung. The next one goes on from where that was.
	for attempt in 1 2 3 4 5; do
		"$bin" chat lmcaddy/tinychat --prompt "What is the capital of France?" >/dev/null && break
		[ "$attempt" -lt 5 ] || exit 1
	done
	"$bin" stop >/dev/null
	wait "$server" || true
	trap - EXIT
	touch "$home/compiled"
}

if ! driver >/dev/null; then
	if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
		echo "the tests with GPUs need Mesa's lavapipe (Debian: apt-get install mesa-vulkan-drivers; Fedora: dnf install mesa-vulkan-drivers)" >&2
		exit 1
	fi
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq >/dev/null
	apt-get install -y -qq --no-install-recommends mesa-vulkan-drivers >/dev/null
fi
if [ "${1:-}" = driver ]; then
	exit
fi
VK_DRIVER_FILES=$(driver)
export LMCADDY_HOME="$home" VK_DRIVER_FILES GGML_VK_VISIBLE_DEVICES=0
if ! engine >/dev/null; then
	mkdir -p -m 700 "$home"
	"$bin" runtime get llama.cpp --variant vulkan >&2
fi
devices=$("$(engine)" --list-devices 2>&1) || true
case $devices in
*Vulkan0:*) ;;
*)
	printf '%s --list-devices does not list lavapipe, which %s names:\n%s\n' "$(engine)" "$VK_DRIVER_FILES" "$devices" >&2
	exit 1
	;;
esac
if [ ! -e "$home/compiled" ]; then
	compile
fi
echo "LMCADDY_LAVAPIPE_RUNTIMES=$home/runtimes"
echo "LMCADDY_LAVAPIPE_CACHE=$home/cache/engines/mesa_shader_cache"
echo "VK_DRIVER_FILES=$VK_DRIVER_FILES"
echo "GGML_VK_VISIBLE_DEVICES=$GGML_VK_VISIBLE_DEVICES"
