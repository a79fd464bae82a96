#!/usr/bin/env python3
"""The table `../reference/ns3/80211a.csv`: a chain of 802.11a at 6 Mbit/s in ns-3.44.

    legacy.py PROGRAM [SEEDS] > ../reference/ns3/80211a.csv    5 seeds unless told

PROGRAM is `ht.cc`, compiled as README.md says; its keys are the columns. `goodput` is the mean over the seeds in Mbit/s, `ci95` the half width of its 95 % interval
(Student's t).
"""

import ht

KEYS = ["nodes", "reach", "loses", "offered", "warmup", "duration"]
ONLY_NEIGHBOURS, ALL = 1, 0
CASES = [(1, ALL, "")]
CASES += [(hops, reach, "") for reach in (ONLY_NEIGHBOURS, ALL) for hops in (2, 3)]
# The second link loses a fifth of its data frames, one way.
CASES += [(hops, ONLY_NEIGHBOURS, "2:0.2") for hops in (2, 3)]


def main():
    program, seeds, _ = ht.command_line(5)
    print(",".join([*KEYS, "runs", "goodput", "ci95"]))
    for hops, reach, loses in CASES:
        case = dict(nodes=hops + 1, reach=reach, loses=loses, offered=6 if hops == 1 else 3.5, warmup=2, duration=62)
        runs, _ = ht.measure(program, {**case, "flows": f"0-{hops}", "legacy": 6}, seeds)
        goodputs = [run[0] for run in runs]
        mean = sum(goodputs) / seeds
        print(",".join([*(str(case[key]) for key in KEYS), str(seeds), f"{mean:.4f}", f"{ht.half_width(goodputs):.4f}"]), flush=True)


if __name__ == "__main__":
    main()
