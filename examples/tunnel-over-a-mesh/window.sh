#!/bin/sh
# Goodput of a bulk transfer and delay of small messages beside it, through `meshpace tunnel --window WINDOW` over four emulated hops.
# As root: ./window.sh WINDOW [OPTIONS of meshpace emulate]. MESHPACE names the program, if it is not in the path.
set -eu
HERE=$(cd "$(dirname "$0")" && pwd)
MESHPACE=${MESHPACE:-meshpace}
WINDOW=$1
shift
RUN_DIR=$(mktemp -d)
export HERE MESHPACE WINDOW RUN_DIR
trap 'rm -rf "$RUN_DIR"' EXIT
for end in near far; do "$MESHPACE" tunnel keygen "$RUN_DIR/$end.key" >"$RUN_DIR/$end.pub"; done
"$MESHPACE" emulate "$HERE/four-hops.toml" "$@"
