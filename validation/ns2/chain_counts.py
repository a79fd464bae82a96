#!/usr/bin/env python3
"""What was lost, what AODV sent and how long segments took, from traces of `chain.tcl`: `../reference/ns2/chain_counts.csv`.

    chain_counts.py [SEEDS] > ../reference/ns2/chain_counts.csv      10 seeds unless told

Runs `ns chain.tcl` itself, its trace through a pipe. Over the whole run of 200 s, all nodes together: unicast packets that a MAC gave
up at its retry limit (`mac_drops`), route requests, replies and errors that an AODV handed down, forwarded ones included
(`rreq`, `rrep`, `rerr`), all per second, and CTS sent for each RTS sent (`cts_per_rts`). Of the data segments that arrive in 20..200 s,
retransmissions included, the delay from agent to agent in ms (`delay_mean`, `delay_p95`). Of the ACKs of new data that arrive then, the time
since the last segment they acknowledge was sent, in ms, if that was sent once (`rtt_mean`, `rtt_p95`; not the agent's own samples, which it takes of
one segment at a time and in ticks). `ci95` is the half width of the 95 % interval over the seeds (Student's t).
"""

import math
import os
import subprocess
import sys
import tempfile

T975 = {5: 2.776, 10: 2.262, 20: 2.093}
KINDS = {"(REQUEST)": "rreq", "(REPLY)": "rrep", "(ERROR)": "rerr"}


def count(lines, start):
    """The quantities of one trace whose flow's time begins at `start`."""
    counts = dict.fromkeys(["mac_drops", "rreq", "rrep", "rerr", "RTS", "CTS"], 0)
    sent, delays = {}, []
    # By segment, when it was sent, None if more than once; and the last segment that was acknowledged.
    sending, acknowledged, round_trips = {}, -1, []
    for line in lines:
        field = line.split()
        if len(field) < 7 or field[0] not in ("s", "r", "f", "D"):
            continue
        op, time, layer, reason, uid, kind = field[0], float(field[1]), field[3], field[4], field[5], field[6]
        if time < start:
            continue
        if layer == "AGT" and kind == "tcp":
            if op == "s":
                sent[uid] = time
                sequence = int(field[17].lstrip("["))
                sending[sequence] = None if sequence in sending else time
            elif op == "r" and time >= start + 20 and int(field[7]) > 40:
                delays.append(time - sent[uid])
        elif layer == "AGT" and kind == "ack" and op == "r":
            sequence = int(field[17].lstrip("["))
            if sequence > acknowledged:
                acknowledged = sequence
                if time >= start + 20 and sending[sequence] is not None:
                    round_trips.append(time - sending[sequence])
        elif layer == "RTR" and kind == "AODV" and op in "sf":
            counts[KINDS[field[-1]]] += 1
        elif layer == "MAC" and op == "s" and kind in ("RTS", "CTS"):
            counts[kind] += 1
        elif layer == "MAC" and op == "D" and reason == "RET" and kind != "RTS":
            counts["mac_drops"] += 1
    result = {name: counts[name] / 200 for name in ("mac_drops", "rreq", "rrep", "rerr")}
    result["cts_per_rts"] = counts["CTS"] / counts["RTS"]
    for name, times in (("delay", sorted(delays)), ("rtt", sorted(round_trips))):
        result[f"{name}_mean"] = 1e3 * sum(times) / len(times)
        result[f"{name}_p95"] = 1e3 * times[math.ceil(0.95 * len(times)) - 1]
    return result


def run(hops, routes, seed):
    """The quantities of one run."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "chain.tcl")
    with tempfile.TemporaryDirectory() as directory:
        pipe = os.path.join(directory, "trace")
        os.mkfifo(pipe)
        words = ["ns", script, f"hops={hops}", f"routes={routes}", f"seed={seed}", f"trace={pipe}"]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            with open(pipe, encoding="ascii") as trace:
                counts = count(trace, 200.0 if routes == "static" else 0.0)
        if process.returncode != 0:
            sys.exit(f"{' '.join(words)}: status {process.returncode}")
    return counts


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    if seeds not in T975:
        sys.exit(f"chain_counts.py: seeds: one of {sorted(T975)}")
    print("routes,hops,quantity,n_seeds,mean,ci95")
    for routes in ("aodv", "static"):
        for hops in (4, 7):
            runs = [run(hops, routes, seed) for seed in range(1, seeds + 1)]
            for name in runs[0]:
                if routes == "static" and name in KINDS.values():
                    continue
                values = [one[name] for one in runs]
                mean = sum(values) / seeds
                deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (seeds - 1))
                print(f"{routes},{hops},{name},{seeds},{mean:.5g},{T975[seeds] * deviation / math.sqrt(seeds):.3g}")


main()
