#!/usr/bin/env python3
"""The table `../reference/ns3/ht-hops.csv`: chains, hidden terminals and transfers of 802.11n in ns-3.44.

    ht.py PROGRAM [SEEDS [SET...]] > ../reference/ns3/ht-hops.csv    3 seeds and all sets unless told

PROGRAM is `ht.cc`, compiled as README.md says; its keys are the columns, with blanks for commas. `goodput` has the mean of each flow in Mbit/s over the seeds,
`ci95` the half width of the 95 % interval (Student's t) of their sum, `mpdus` the mean number of MPDUs in a frame with data, by node.
"""

import itertools
import subprocess
import sys

KEYS = ["nodes", "reach", "flows", "tos", "traffic", "mcs", "ampdu", "rts", "bar", "counts", "warmup", "duration"]
DEFAULTS = {"reach": 0, "tos": "0", "traffic": "udp", "ampdu": 1, "rts": 0, "bar": 1, "counts": 1, "warmup": 2, "duration": 12}
T975 = {2: 12.706, 3: 4.303, 5: 2.776, 10: 2.262}
BOTH = (0, 1)


def chains(name, reach, hops, rates):
    for count, mcs, ampdu, rts in itertools.product(hops, rates, BOTH, BOTH):
        case = dict(nodes=count + 1, reach=reach, flows=f"0-{count}", mcs=mcs, ampdu=ampdu, rts=rts)
        # There are few aggregates in a second, and relays as fast as their source take long to fill their queues.
        yield name, dict(case, duration=(62 if reach == 0 and count > 2 else 22) if ampdu else 12)


def hidden(bar):
    for mcs, ampdu, rts in itertools.product((3, 7), BOTH, BOTH):
        if bar or ampdu:
            yield "hidden", dict(nodes=3, reach=1, flows="0-1,2-1", mcs=mcs, ampdu=ampdu, rts=rts, bar=bar)


def transfers(name, hops, rates, kinds, warmup, duration):
    for traffic, count, mcs, ampdu, rts in itertools.product(kinds, hops, rates, BOTH, BOTH):
        case = dict(nodes=count + 1, flows=f"0-{count}", traffic=traffic, mcs=mcs, ampdu=ampdu, rts=rts)
        yield name, dict(case, warmup=warmup, duration=duration)


CASES = [
    *transfers("transfer", (1,), (0,), ("newreno", "cubic"), 30, 90),
    *transfers("transfer", (1,), (3, 7), ("cubic",), 10, 40),
    *((name, case) for name, case in transfers("transfer-hops", (2,), (7,), ("newreno",), 5, 35) if case["ampdu"]),
    *chains("chain", 0, (2, 3, 4), (3, 7)),
    *hidden(1),
    *hidden(0),
    *chains("chain-hidden", 1, (3, 4), (3,)),
    *chains("chain-hidden", 2, (4,), (3,)),
]


def command_line(seeds):
    """PROGRAM, the number of seeds, and the rest of the command line."""
    seeds = int(sys.argv[2]) if len(sys.argv) > 2 else seeds
    if seeds not in T975:
        sys.exit(f"{sys.argv[0]}: seeds: one of {sorted(T975)}")
    return sys.argv[1], seeds, sys.argv[3:]


def measure(program, case, seeds):
    """The goodput of each flow in each run, and likewise the mean size of the aggregates of each node."""
    words = [program, *(f"{key}={value}" for key, value in case.items())]
    runs, sizes = [], []
    for seed in range(1, seeds + 1):
        done = subprocess.run([*words, f"seed={seed}"], check=True, capture_output=True, text=True)
        flows, nodes, _ = done.stdout.split("|")
        runs.append([float(word) for word in flows.split()])
        sizes.append([float(word) for word in nodes.split()])
    return runs, sizes


def half_width(values):
    """Half the 95 % interval of the mean."""
    mean = sum(values) / len(values)
    return T975[len(values)] * (sum((one - mean) ** 2 for one in values) / (len(values) - 1) / len(values)) ** 0.5


def main():
    program, seeds, sets = command_line(3)
    print(",".join(["set", *KEYS, "goodput", "ci95", "mpdus"]))
    for name, case in CASES:
        if sets and name not in sets:
            continue
        case = {**DEFAULTS, **case}
        runs, sizes = measure(program, case, seeds)
        half = half_width([sum(run) for run in runs])
        goodput = " ".join(f"{sum(flow) / seeds:.3f}" for flow in zip(*runs))
        mpdus = " ".join(f"{sum(node) / seeds:.2f}" for node in zip(*sizes))
        row = [name, *(str(case[key]) for key in KEYS), goodput, f"{half:.3f}", mpdus]
        print(",".join(word.replace(",", " ") for word in row), flush=True)


if __name__ == "__main__":
    main()
