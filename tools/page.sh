#!/bin/sh
# Usage: page.sh [INTO]
#
# Checks the types of the page in web/src and builds it: web/dist/index.html, and web/src/schema.ts. Both go into the folder INTO
# instead, if one is given. What this needs is installed into .cache/page.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
if [ $# -gt 0 ]; then
	mkdir -p "$1"
	set -- "$(cd "$1" && pwd)"
fi
"$root/tools/node.sh" "$root/.cache/page" ../web
ln -sfn "$root/.cache/page/node_modules" "$root/web/node_modules"
cd "$root/web"
node node_modules/typescript/bin/tsc -p .
node build.mjs "$@"
