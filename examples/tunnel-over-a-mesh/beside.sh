#!/bin/sh
# Small messages beside a bulk transfer over four emulated hops of 11 Mbit/s, through `meshpace tunnel --transport TRANSPORT`; with `send` the bulk is
# that of `meshpace send --transport quiet-train`, and the small messages go by the kernel's TCP beside it. WHAT is `messages` (ten a second, one
# way, as MQTT has them), `keys` (five a second, there and back) or `none`. As root: ./beside.sh TRANSPORT WHAT [OPTIONS of meshpace emulate].
# MESHPACE names the program, if it is not in the path; SECONDS_LONG how long it takes (60).
set -eu
HERE=$(cd "$(dirname "$0")" && pwd)
MESHPACE=${MESHPACE:-meshpace}
SECONDS_LONG=${SECONDS_LONG:-60}
TRANSPORT=$1
WHAT=$2
shift 2
RUN_DIR=$(mktemp -d)
export HERE MESHPACE SECONDS_LONG TRANSPORT WHAT RUN_DIR
trap 'rm -rf "$RUN_DIR"' EXIT
for end in near far; do "$MESHPACE" tunnel keygen "$RUN_DIR/$end.key" >"$RUN_DIR/$end.pub"; done
"$MESHPACE" emulate "$HERE/beside.toml" "$@"
