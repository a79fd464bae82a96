#!/usr/bin/env python3
"""The table `../reference/ns3/saturated.csv`: the cases below in ns-3.44.

    saturated.py PROGRAM [SEEDS] > ../reference/ns3/saturated.csv    5 seeds unless told

PROGRAM is `saturated.cc`, compiled as README.md says. A row has the places of the nodes and the flows, so that the same can be run
elsewhere; mean and half width of the 95 % interval (Student's t over the seeds) of the sum of the flows, and of each flow.
"""

import math
import subprocess
import sys

T975 = {3: 4.303, 5: 2.776, 10: 2.262}


def cell(x, stations, radius, first):
    """A receiver at x, stations on a circle around it, each of which sends to it; the receiver's number is `first`."""
    places = [(x, 0.0)]
    for n in range(stations):
        angle = 2 * math.pi * n / stations
        places.append((x + radius * math.cos(angle), radius * math.sin(angle)))
    return places, [(first + 1 + n, first) for n in range(stations)]


def cells(*parts):
    """Cells (x, stations, radius) beside each other."""
    places, flows = [], []
    for x, stations, radius in parts:
        more = cell(x, stations, radius, len(places))
        places, flows = places + more[0], flows + more[1]
    return places, flows


def line(xs, flows):
    """Nodes on a line."""
    return [(x, 0.0) for x in xs], flows


CASES = {
    "one hop of 200 m": line([0, 200], [(0, 1)]),
    "0 to 1 and 2 to 1, 200 m apart": line([0, 200, 400], [(0, 1), (2, 1)]),
    "two pairs, senders 300 m apart, receivers outward": line([200, 0, 500, 700], [(0, 1), (2, 3)]),
    "two pairs, senders 540 m apart, receivers outward": line([200, 0, 740, 940], [(0, 1), (2, 3)]),
    "hidden pairs, 0 to 1 and 3 to 4 of a chain of 200 m": line([0, 200, 600, 800], [(0, 1), (2, 3)]),
    "a cell of 5, radius 50 m": cells((0, 5, 50)),
    "a cell of 10, radius 50 m": cells((0, 10, 50)),
    "two cells of 5, radius 10 m, 450 m apart": cells((0, 5, 10), (450, 5, 10)),
    "two cells of 5, radius 50 m, 300 m apart": cells((0, 5, 50), (300, 5, 50)),
}


def mean_and_half(values):
    """Mean and half width."""
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return mean, T975[len(values)] * deviation / math.sqrt(len(values))


def main():
    program, seeds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 5
    if seeds not in T975:
        sys.exit(f"saturated.py: seeds: one of {sorted(T975)}")
    print("case,rts,nodes,flows,n_seeds,sum_kbps,sum_ci95,flow_kbps,flow_ci95")
    for name, (places, flows) in CASES.items():
        nodes = ",".join(f"{x:.3f}:{y:.3f}" for x, y in places)
        pairs = ",".join(f"{a}-{b}" for a, b in flows)
        for rts in (0, 1):
            words = [program, f"nodes={nodes}", f"flows={pairs}", f"rts={rts}"]
            runs = []
            for seed in range(1, seeds + 1):
                done = subprocess.run([*words, f"seed={seed}"], check=True, capture_output=True, text=True)
                runs.append([float(word) for word in done.stdout.split()])
            total = mean_and_half([sum(run) for run in runs])
            each = [mean_and_half(list(flow)) for flow in zip(*runs)]
            means, halves = (" ".join(f"{one[part]:.1f}" for one in each) for part in (0, 1))
            row = [name, str(rts), nodes, pairs, str(seeds), f"{total[0]:.1f}", f"{total[1]:.1f}", means, halves]
            print(",".join(f'"{word}"' if "," in word else word for word in row), flush=True)


main()
