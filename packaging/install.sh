#!/bin/sh
# Installs lmcaddy of a release, with its completions and manual pages, without root.
#
#   LMCADDY_RELEASE=https://… sh install.sh   from the folder or the http(s) address with the release's files
#   sh install.sh                             from the folder of this script, if the files are there
#   sh install.sh --program FILE              a program that was built here
#   sh install.sh --uninstall
#
# LMCADDY_PREFIX is the folder that bin and share are in: ~/.local by default.
set -eu
umask 022 # the folders are for everybody, as the files are

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

# fetch NAME copies a file of the release to the work folder.
fetch() {
	case $release in
	http://* | https://*)
		if command -v curl >/dev/null; then
			curl --fail --silent --show-error --location --proto-redir =https --output "$work/$1" "$release/$1"
		elif command -v wget >/dev/null; then
			wget -q -O "$work/$1" "$release/$1"
		else
			fail "there is neither curl nor wget. Install one of them, or download the release's files, and set LMCADDY_RELEASE to their folder."
		fi
		;;
	*) cp "$release/$1" "$work/$1" ;;
	esac || fail "$release has no $1 that can be read. LMCADDY_RELEASE is the folder, or the address, with the files of a release."
}

sha256() {
	if command -v sha256sum >/dev/null; then
		sha256sum "$1"
	elif command -v shasum >/dev/null; then
		shasum -a 256 "$1"
	else
		openssl dgst -sha256 -r "$1"
	fi | cut -d ' ' -f 1
}

# unpack downloads the archive for this machine, and sets program to the program in it.
unpack() {
	case $(uname -s) in
	Linux) os=linux ;;
	Darwin) os=darwin ;;
	*) fail "there is no archive for $(uname -s). install.ps1 is for Windows; on other systems, build lmcaddy from source." ;;
	esac
	case $(uname -m) in
	x86_64 | amd64) arch=amd64 ;;
	arm64 | aarch64) arch=arm64 ;;
	*) fail "there is no archive for $(uname -m). Build lmcaddy from source." ;;
	esac
	# Rosetta tells programs that a Mac with an Apple processor has one of Intel's.
	if [ $os = darwin ] && [ "$(sysctl -n sysctl.proc_translated 2>/dev/null)" = 1 ]; then arch=arm64; fi
	target=${os}_$arch
	fetch SHA256SUMS
	line=$(grep "  lmcaddy_[^/]*_$target\.tar\.gz$" "$work/SHA256SUMS" | head -n 1)
	[ -n "$line" ] || fail "$release has no archive for $target. Build lmcaddy from source."
	archive=${line#*  }
	fetch "$archive"
	[ "$(sha256 "$work/$archive")" = "${line%%  *}" ] || fail "$archive isn't what SHA256SUMS says: it is damaged, or has been changed. Nothing was installed."
	tar -xzf "$work/$archive" -C "$work"
	program=$work/${archive%.tar.gz}/lmcaddy
}

# put SOURCE FOLDER NAME MODE replaces a file at once, so that a program that runs isn't written to.
put() {
	mkdir -p "$2"
	install -m "$4" "$1" "$2/.$3.new"
	mv -f "$2/.$3.new" "$2/$3"
}

put_all() {
	# Texts that name the user's home folder have ~ for it.
	HOME='~' "$1" manpage --directory "$work/man" || fail "$1 doesn't run on this machine. Nothing was installed."
	for shell in bash fish zsh; do
		HOME='~' "$1" completion "$shell" >"$work/$shell"
	done
	put "$1" "$to/bin" lmcaddy 0755
	for page in "$work"/man/*.8; do
		put "$page" "$to/share/man/man8" "$(basename "$page")" 0644
	done
	put "$work/bash" "$to/share/bash-completion/completions" lmcaddy 0644
	put "$work/fish" "$to/share/fish/vendor_completions.d" lmcaddy.fish 0644
	put "$work/zsh" "$to/share/zsh/site-functions" _lmcaddy 0644
}

uninstall() {
	for unit in "$HOME/.config/systemd/user/lmcaddy.service" "$HOME/Library/LaunchAgents/io.github.lmcaddy.plist"; do
		if grep -qsF "$to/bin/lmcaddy" "$unit"; then
			fail "a service starts $to/bin/lmcaddy. Remove it first: lmcaddy service uninstall"
		fi
	done
	rm -f "$to/bin/lmcaddy" "$to/share/bash-completion/completions/lmcaddy" "$to/share/zsh/site-functions/_lmcaddy" \
		"$to/share/fish/vendor_completions.d/lmcaddy.fish" "$to"/share/man/man8/lmcaddy.8 "$to"/share/man/man8/lmcaddy-*.8
	echo "lmcaddy is removed from $to. Models, conversations and tokens are still in ${LMCADDY_HOME:-$HOME/.lmcaddy}."
}

# What is downloaded in parts does nothing: it is all read before main is called.
main() {
	to=${LMCADDY_PREFIX:-$HOME/.local}
	if [ "${1-}" = --uninstall ]; then
		uninstall
		return
	fi
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	if [ "${1-}" = --program ]; then
		program=$2
	else
		[ $# = 0 ] || fail "$1 isn't known. The options are --program FILE and --uninstall."
		release=${LMCADDY_RELEASE-}
		if [ -z "$release" ] && [ -f "$0" ] && [ -f "$(dirname "$0")/SHA256SUMS" ]; then release=$(dirname "$0"); fi
		[ -n "$release" ] || fail "set LMCADDY_RELEASE to the folder, or the address, with the files of a release."
		release=${release%/}
		unpack
	fi
	put_all "$program"
	echo "$("$to/bin/lmcaddy" version) is installed in $to/bin."
	case ":$PATH:" in
	*":$to/bin:"*) ;;
	*) echo "Add this to ~/.profile, or to ~/.zshrc on a Mac:  export PATH=\"$to/bin:\$PATH\"" ;;
	esac
	echo "The engine that runs the models isn't part of lmcaddy. To get it: lmcaddy runtime get llama.cpp"
}

main "$@"
