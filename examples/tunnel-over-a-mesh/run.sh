#!/bin/sh
# Fetches a file of SIZE bytes (20 million) by curl through `meshpace tunnel` over an emulated mesh whose nodes move, and compares it with what
# was sent. As root: ./run.sh [OPTIONS of meshpace emulate]. Exit status 0 if it is intact. MESHPACE names the program, if it is not in the path.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
MESHPACE=${MESHPACE:-meshpace}
RUN_DIR=$(mktemp -d)
export MESHPACE RUN_DIR
trap 'rm -rf "$RUN_DIR"' EXIT
head -c "${SIZE:-20000000}" /dev/urandom >"$RUN_DIR/file"
for end in near far; do "$MESHPACE" tunnel keygen "$RUN_DIR/$end.key" >"$RUN_DIR/$end.pub"; done
"$MESHPACE" emulate "$here/mesh.toml" "$@"
cmp "$RUN_DIR/file" "$RUN_DIR/fetched"
echo intact
