#!/usr/bin/env python3
"""What the AODV of every node was told and did in a trace of ns-2.35 (old wireless format, `chain.tcl trace=FILE`).

    aodv_events.py TRACE [END_SECONDS] > EVENTS

One event per line: time in ns, node, kind, fields. Told: `m` a message from a neighbour, `d` a data packet, `x` a data
packet the MAC gave up. Done: `M` a message sent, `D` a data packet sent on, `N` a packet dropped. A message is
`Q hops id destination number origin number ttl`, `P hops destination number lifetime ttl origin` or
`E count first-destination` (the trace holds no more of a RERR).
"""

import re
import sys

LINE = re.compile(r"^([srfD]) (\S+) _(\d+)_ (\S+)\s+(\S+) (\d+) (\S+) \d+ \[(\S+) (\S+) (\S+) \S+\] \S+ "
                  r"\[(\d+):\d+ (-?\d+):\d+ (\d+) (\d+)\] (.*)$")


def message(ttl, origin, rest):
    field = rest.replace("[", " ").replace("]", " ").split()
    if field[0] == "0x2":
        return f"Q {field[1]} {field[2]} {field[3]} {field[4]} {field[5]} {field[6]} {ttl}"
    if field[0] == "0x4":
        return f"P {field[1]} {field[2]} {field[3]} {int(float(field[4]))} {ttl} {origin}"
    return f"E {field[1]} {field[2]}"


def main():
    end = float(sys.argv[2]) if len(sys.argv) > 2 else float("inf")
    for line in open(sys.argv[1], encoding="ascii"):
        match = LINE.match(line)
        if not match:
            continue
        op, time, node, layer, reason, uid, kind, _, mac_to, mac_from, source, to, ttl, next_hop, rest = match.groups()
        if float(time) > end:
            break
        seconds, nanos = time.split(".")
        at = f"{int(seconds) * 10**9 + int(nanos)} {node}"
        routing = kind == "AODV"
        if layer == "RTR" and routing and op in "rsf":
            if op == "r":
                print(at, "m", int(mac_from, 16), message(ttl, to, rest))
            else:
                print(at, "M", next_hop if int(to) >= 0 else -1, message(ttl, to, rest))
        elif layer == "RTR" and not routing:
            if op == "r":
                hops = rest.split()[-2] if source != node else 0
                print(at, "d", uid, source, to, 30 if source == node else ttl, hops)
            elif op in "sf":
                print(at, "D", uid, next_hop)
            elif reason != "CBK":
                # CBK packets were in the interface queue or in the MAC.
                print(at, "N", uid, reason)
        elif layer == "MAC" and op == "D" and reason == "RET" and not routing:
            print(at, "x", uid, int(mac_to, 16), source, to, rest.split()[-2])


main()
