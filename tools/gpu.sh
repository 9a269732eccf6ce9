#!/bin/sh
# Measures lmcaddy on this machine's GPU, or packs what does that on a machine without Go, make and a network:
#
#	tools/gpu.sh                  measures, and writes the table into docs/performance.md
#	tools/gpu.sh pack [RUNTIME]   makes .cache/gpu/pack.tar, with RUNTIME, a folder in LMCADDY_HOME/runtimes, if it is named
#	tools/gpu.sh update TABLE     writes the table from another machine into docs/performance.md
#
# The engine is the selected one in LMCADDY_RUNTIMES, by default LMCADDY_HOME/runtimes, or else `lmcaddy runtime get llama.cpp` gets one. GPU_FLAGS are
# flags of e2e/gpu. GPU_DEVICES=lavapipe tries the measurement itself on a device that the processor computes, GPU_DEVICES=none on the processor:
# both with tiny models, and without a change of the document.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cache=$root/.cache/gpu
document=$root/docs/performance.md
bin=${LMCADDY_BIN:-$root/bin/lmcaddy}

build() {
	mkdir -p "$cache"
	(cd "$root/e2e" && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$cache/gpu" ./gpu)
}

# update replaces what is between the document's marks.
update() {
	grep -q '^| what | figure' "$1" || { echo "$1 has no table of tools/gpu.sh" >&2; exit 1; }
	{ echo; cat "$1"; echo; } >"$cache/between"
	sed -e '/^<!-- make gpu -->$/,/^<!-- end of make gpu -->$/{//!d;}' -e "/^<!-- make gpu -->\$/r $cache/between" "$document" >"$cache/document"
	cat "$cache/document" >"$document"
}

# measure prints the table. Its arguments are the kind of home and flags.
measure() {
	home=$cache/$1
	shift
	mkdir -p -m 700 "$home"
	if [ -n "$runtimes" ]; then
		rm -rf "$home/runtimes"
		ln -s "$runtimes" "$home/runtimes"
	else
		[ ! -L "$home/runtimes" ] || rm "$home/runtimes"
		LMCADDY_HOME="$home" "$bin" runtime get llama.cpp --if-missing >&2
	fi
	cd "$root"
	# shellcheck disable=SC2086 # several flags
	"$cache/gpu" -bin "$bin" -home "$home" "$@" ${GPU_FLAGS:-}
}

# pack makes the archive. Its argument is a runtime's folder, or empty.
pack() {
	folder=$cache/pack
	rm -rf "$folder"
	mkdir -p "$folder"
	cp "$cache/gpu" "$root/testdata/models/lmcaddy/tinychat/tinychat-f16.gguf" "$folder/"
	xz -T0 -c "$bin" >"$folder/lmcaddy.xz"
	if [ -n "$1" ]; then
		runtime=$(cd "$1" && pwd)
		tar -C "$(dirname "$runtime")" -c "$(basename "$runtime")" | xz -T0 -c >"$folder/runtime.tar.xz"
		basename "$runtime" >"$folder/selected"
	fi
	cat >"$folder/run" <<'RUN'
#!/bin/sh
# Measures lmcaddy on this machine's GPU within five minutes: ./run HOME [FLAGS] >table.md. It needs the GPU's driver, and no network.
# HOME is a folder for models (10 GB), compiled code, and the engine: unless that was packed, its folder has to be in HOME/runtimes, and the folder's
# name in HOME/runtimes/selected. Keep it: a second run is faster. `./gpu -h` lists flags; with -long-layers 16 -long-width 2048 it takes less.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
home=$1
shift
unxz() {
	if command -v xz >/dev/null; then
		xz -dc "$1"
	else
		python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), sys.stdout.buffer)' "$1"
	fi
}
if [ ! -x "$here/lmcaddy" ]; then
	unxz "$here/lmcaddy.xz" >"$here/lmcaddy"
	chmod +x "$here/lmcaddy"
fi
if [ -f "$here/runtime.tar.xz" ] && [ ! -e "$home/runtimes/selected" ]; then
	mkdir -p -m 700 "$home"
	mkdir -p "$home/runtimes"
	unxz "$here/runtime.tar.xz" | tar -C "$home/runtimes" -x
	cp "$here/selected" "$home/runtimes/selected"
fi
exec "$here/gpu" -bin "$here/lmcaddy" -home "$home" -tokenizer "$here/tinychat-f16.gguf" "$@"
RUN
	chmod +x "$folder/run"
	tar -C "$cache" -cf "$cache/pack.tar" pack
	ls -l "$cache/pack.tar"
}

case ${1:-} in
update)
	mkdir -p "$cache"
	update "$2"
	exit
	;;
pack)
	build
	pack "${2:-}"
	exit
	;;
esac

build
tiny="-layers 16 -width 512 -context 1024 -long-layers 4 -long-width 256 -prompt 700 -tokens 2 -time 15m"
case ${GPU_DEVICES:-} in
lavapipe)
	settings=$("$root/tools/lavapipe.sh")
	export $settings
	runtimes=$LMCADDY_LAVAPIPE_RUNTIMES
	if [ ! -d "$cache/lavapipe/cache/engines/mesa_shader_cache" ]; then
		mkdir -p "$cache/lavapipe/cache/engines"
		cp -r "$LMCADDY_LAVAPIPE_CACHE" "$cache/lavapipe/cache/engines/"
	fi
	# shellcheck disable=SC2086 # several flags
	measure lavapipe $tiny -args "--no-warmup --threads 2"
	exit
	;;
none)
	runtimes=${LMCADDY_RUNTIMES:-$root/.cache/home/runtimes}
	# shellcheck disable=SC2086 # several flags
	measure processor $tiny -without-gpu
	exit
	;;
esac
runtimes=${LMCADDY_RUNTIMES:-${LMCADDY_HOME:-$HOME/.lmcaddy}/runtimes}
if [ ! -s "$runtimes/selected" ]; then
	runtimes=
fi
measure home >"$cache/table.md"
cat "$cache/table.md"
update "$cache/table.md"
echo "The table is in docs/performance.md." >&2
