#!/usr/bin/env python3
"""The table `../reference/ns3/ht-edca.csv`: access categories of 802.11n in ns-3.44.

    edca.py PROGRAM [SEEDS [SET...]] > ../reference/ns3/ht-edca.csv    5 seeds, 10 of voice beside best effort, and all sets unless told

PROGRAM is `ht.cc`, compiled as README.md says. All send to node 0, and all hear each other. `senders` tells the flows, separated by blanks, each by its node and
its category: BK, BE, VI, VO; the TXOP limits are in us. `goodput` has the mean of each flow in Mbit/s over the seeds, `ci95` the half width of its 95 % interval
(Student's t), `sum_ci95` that of their sum.
"""

import itertools
import os
import tempfile

import ht

KEYS = ["mcs", "ampdu", "rts", "counts", "video_txop", "voice_txop", "offered", "warmup", "duration"]
TOS = {"BK": 32, "BE": 0, "VI": 160, "VO": 192}
DEFAULTS = {"mcs": 7, "ampdu": 0, "rts": 0, "counts": 1, "video_txop": 0, "voice_txop": 0, "warmup": 1, "duration": 7}
BOTH = (0, 1)
# Those of IEEE Std 802.11-2012, and those that so many exchanges of one MPDU fill at MCS 7 that nothing is left for a CF-End.
LIMITS = dict(video_txop=3008, voice_txop=1504)
FILLED = dict(video_txop=2880, voice_txop=1440)

ALONE = ["1VO", "1VI", "1BE", "1BK"]
ONE_STATION = ["1VO 1BE", "1VI 1BE", "1BE 1BK"]
STATIONS = ["1VO 2BE", "1VI 2BE", "1VO 2VI", "1BE 2BK", "1VI 2VI 3BE 4BE", "1VO 2VI 3BE 4BK"]
RARE = ["1VO 1BE", "1VO 2BE"]
BURSTS = ["1VO", "1VI", "1VO 1BE", "1VI 1BE", "1VI 2BE", "1VO 2VI", "1VI 2VI 3BE 4BE"]


def frames():
    """One frame for each access."""
    yield from (("frames", senders, {}) for senders in ALONE)
    for senders, ampdu, rts in itertools.product(ONE_STATION + STATIONS, BOTH, BOTH):
        yield "frames", senders, dict(ampdu=ampdu, rts=rts)
    yield "frames", "1VI 1BE 2VI 2BE", {}


def bursts():
    """TXOPs of several frames."""
    for senders in BURSTS:
        yield "txop-filled", senders, FILLED
        yield "txop", senders, LIMITS
        yield "txop", senders, dict(LIMITS, ampdu=1)
        yield "txop-rts", senders, dict(LIMITS, rts=1)


CASES = [*frames(), *bursts()]


def main():
    program, least, sets = ht.command_line(5)
    print(",".join(["set", "senders", *KEYS, "runs", "goodput", "ci95", "sum_ci95"]))
    for name, senders, case in CASES:
        if sets and name not in sets:
            continue
        case = {**DEFAULTS, **case}
        # Best effort is rare beside voice, and silent for seconds where both are of one station.
        if name == "frames" and senders == "1VO 1BE" and not case["ampdu"] and not case["rts"]:
            case["duration"] = 31
        seeds = max(10, least) if senders in RARE and name == "frames" else least
        # Each alone fills the medium.
        case["offered"] = 66 if case["ampdu"] else 45
        flows = [(int(sender[:-2]), sender[-2:]) for sender in senders.split()]
        nodes = 1 + max(node for node, _ in flows)
        # On a line packets would go from node to node.
        lines = [f"link {a} {b}" for a, b in itertools.combinations(range(nodes), 2)] + [f"flow {node} 0" for node, _ in flows]
        with tempfile.TemporaryDirectory() as folder:
            links = os.path.join(folder, "links.txt")
            with open(links, "w", encoding="ascii") as file:
                file.write("\n".join(lines) + "\n")
            scene = {"nodes": nodes, "links": links, "tos": ",".join(str(TOS[category]) for _, category in flows)}
            runs, _ = ht.measure(program, {**scene, **case}, seeds)
        by_flow = list(zip(*runs))
        goodput = " ".join(f"{sum(flow) / seeds:.3f}" for flow in by_flow)
        halves = " ".join(f"{ht.half_width(flow):.3f}" for flow in by_flow)
        total = f"{ht.half_width([sum(run) for run in runs]):.3f}"
        print(",".join([name, senders, *(str(case[key]) for key in KEYS), str(seeds), goodput, halves, total]), flush=True)


if __name__ == "__main__":
    main()
