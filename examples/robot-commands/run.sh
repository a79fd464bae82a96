#!/bin/sh
# Latency of commands to a robot beside its images, without and with another robot's bulk transfer, for each congestion control of images and
# bulk. As root: ./run.sh [CONTROL...] (reno cubic bbr). MESHPACE names the program, if it is not in the path; SECONDS_LONG how long each takes (60).
set -eu
HERE=$(cd "$(dirname "$0")" && pwd)
SECONDS_LONG=${SECONDS_LONG:-60}
export HERE SECONDS_LONG CONTROL BULK
[ $# -gt 0 ] || set -- reno cubic bbr
for CONTROL; do
    for BULK in "" yes; do
        echo "$CONTROL${BULK:+, with bulk}:"
        "${MESHPACE:-meshpace}" emulate "$HERE/mesh.toml" 2>&1 | grep -v 'waited for a processor\|^late: \|on the air'
    done
done
