#!/bin/sh
# Small messages and files beside a bulk transfer over emulated hops of 11 Mbit/s, through `meshpace tunnel --transport TRANSPORT`. As root:
# ./beside.sh TRANSPORT WHAT [OPTIONS of meshpace emulate]
#
# TRANSPORT  `auto` is the tunnel's own choice; with `send` the bulk is that of `meshpace send --transport quiet-train`, and the small messages go by
#            the kernel's TCP beside it; with `udp` there is neither bulk nor tunnel, and messages are datagrams: what no end system gets below
# WHAT       `messages` (ten a second of 200 bytes, one way, as MQTT has them), `robot` (those and 20 datagrams of UDP a second), `keys` (64 bytes
#            five times a second, there and back), `fetch` or `store` (50 files of 20 kB one after the other), or `none`
#
# MESHPACE names the program, if it is not in the path. Other variables:
# SECONDS_LONG  how long it takes (60)
# BULK          `no`: no bulk of our own
# NEIGHBOUR     somebody else's bulk over the same nodes (on a cross over the other chain): `cubic` or another of the kernel's, beside the tunnel; `tunnel`, through a second one
# CROWD         `200`: so many other streams through the tunnel, with bulk each; `200/10`: with 200 bytes every 10 s each
# DATAGRAM      bytes of a datagram (200)
# SHAPE         `chain`; `cross`, two of four hops; `walk`, a chain along which the near end walks to the middle and back, from 10 s to 70 s, with AODV
# HOPS          of a chain (4)
set -eu
HERE=$(cd "$(dirname "$0")" && pwd)
MESHPACE=${MESHPACE:-meshpace}
SECONDS_LONG=${SECONDS_LONG:-60}
NEIGHBOUR=${NEIGHBOUR:-none}
HOPS=${HOPS:-4}
SHAPE=${SHAPE:-chain}
TRANSPORT=$1
WHAT=$2
shift 2
RUN_DIR=$(mktemp -d)
OPTIONS="--channel-rate 11Mbit/s --key $RUN_DIR/near.key --peers $RUN_DIR/far.pub"
[ "$TRANSPORT" = auto ] || OPTIONS="$OPTIONS --transport $TRANSPORT"
# The neighbour's ends are those of everything, but on the cross.
NEAR=0 FAR=$HOPS ROUTING=static
case $SHAPE in
chain) TOPOLOGY="kind = \"chain\"\nhops = $HOPS" ;;
cross) TOPOLOGY='kind = "cross"' HOPS=4 NEAR=5 FAR=8 ;;
walk)
  # The way to the middle, 40 m beside the chain.
  HALF=$((HOPS * 100))
  TOPOLOGY="kind = \"chain\"\nhops = $HOPS\nmoves = [{ node = 0, start = \"10 s\", end = \"40 s\", to = [\"$HALF m\", \"40 m\"] }, { node = 0, start = \"40 s\", end = \"70 s\", to = [\"0 m\", \"0 m\"] }]"
  ROUTING=aodv
  ;;
esac
case $TRANSPORT in send | udp) HOST=n$HOPS ;; *) HOST= ;; esac
export HERE MESHPACE SECONDS_LONG NEIGHBOUR NEAR FAR HOPS TRANSPORT WHAT RUN_DIR OPTIONS HOST
trap 'rm -rf "$RUN_DIR"' EXIT
for end in near far; do "$MESHPACE" tunnel keygen "$RUN_DIR/$end.key" >"$RUN_DIR/$end.pub"; done
sed "s/@HOPS@/$HOPS/; s/@NEAR@/$NEAR/; s/@FAR@/$FAR/; s/@ROUTING@/$ROUTING/; s/@TOPOLOGY@/$TOPOLOGY/" "$HERE/beside.toml" >"$RUN_DIR/beside.toml"
"$MESHPACE" emulate "$RUN_DIR/beside.toml" "$@"
