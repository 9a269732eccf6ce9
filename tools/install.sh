#!/bin/sh
# install.sh PROGRAM FOLDER installs the program with its completions and manual pages below a folder such as /usr/local.
# install.sh --remove FOLDER deletes them.
set -eu
umask 022 # the folders are for everybody, as the files are

program=$1 to=$2

if [ "$program" = --remove ]; then
	rm -f "$to/bin/lmcaddy" "$to/share/bash-completion/completions/lmcaddy" "$to/share/zsh/site-functions/_lmcaddy" \
		"$to/share/fish/vendor_completions.d/lmcaddy.fish" "$to"/share/man/man8/lmcaddy.8 "$to"/share/man/man8/lmcaddy-*.8
	exit
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# put SOURCE FOLDER NAME MODE
put() {
	mkdir -p "$2"
	install -m "$4" "$1" "$2/$3"
}

put "$program" "$to/bin" lmcaddy 0755
# Texts that name the user's home folder have ~ for it.
HOME='~' "$program" manpage --directory "$work/man"
for page in "$work"/man/*.8; do
	put "$page" "$to/share/man/man8" "$(basename "$page")" 0644
done
for shell in bash fish zsh; do
	HOME='~' "$program" completion "$shell" >"$work/$shell"
done
put "$work/bash" "$to/share/bash-completion/completions" lmcaddy 0644
put "$work/fish" "$to/share/fish/vendor_completions.d" lmcaddy.fish 0644
put "$work/zsh" "$to/share/zsh/site-functions" _lmcaddy 0644
