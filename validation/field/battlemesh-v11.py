#!/usr/bin/env python3
"""Paths of the Battlemesh v11 with what they carried and what their hops carried: battlemesh-v11.csv.

usage: battlemesh-v11.py CHECKOUT >../reference/field/battlemesh-v11.csv

CHECKOUT is https://github.com/battlemesh/battlemeshv11-testbed (Berlin, May 2018). Nothing of it is kept but the figures that come out.

- Goodput: `iperf -y C` of 10 s from each router to each other one, one pair at a time: BMX7 on 11 May, OLSRv2 on 12 May. Of the last column see
  docs/field.md: it is bytes in the interval. More than one run: the mean.
- Routes: the next hop that was installed most often in the two minutes before a router was stopped on 12 May, two to four hours after OLSRv2 was measured:
  `olsr2_crash`, and as another choice `prince_crash`. Those of BMX7 were not recorded: the same routes are taken for it.
- A hop is a pair whose route has one hop. bound_kbps is 1 over the largest sum of 1 / goodput over four hops in a row.

Column `set`: `bmx7` and `olsrv2` by the routes of `olsr2_crash`, `olsrv2-prince` by those of `prince_crash`.
"""

import collections
import json
import pathlib
import re
import sys

REUSE = 4
SETS = (("bmx7", "iperf_bmx7", "olsr2"), ("olsrv2", "iperf_olsr2", "olsr2"), ("olsrv2-prince", "iperf_olsr2", "prince"))


def goodputs(directory):
    """kbit/s of each pair."""
    found = collections.defaultdict(list)
    for file in directory.glob("*/*.csv"):
        source = int(file.parent.name.split(".")[-1])
        name = file.stem.split("-")[-1]
        target = int(name.split("::")[0].split(":")[1] if ":" in name else name.split(".")[2])
        for line in file.read_text().splitlines():
            interval, _, last = line.split(",")[6:9]
            begin, end = map(float, interval.split("-"))
            if source != target:
                found[source, target].append(8e-3 * float(last) / (end - begin))
    return {pair: sum(runs) / len(runs) for pair, runs in found.items()}


def next_hops(directory):
    """The next hop of each node to each other one."""
    killed = int((directory / "kill_time").read_text())
    hops = {}
    for node in directory.glob("*_192.168.254.*"):
        seen = collections.defaultdict(collections.Counter)
        for table in node.iterdir():
            if not table.name.isdigit() or int(table.name) >= killed:
                continue
            try:
                routes = json.loads(table.read_text())["route"]
            except ValueError:
                continue  # written while the daemon did not answer
            for route in routes:
                target = re.fullmatch(r"10\.0\.(\d+)\.1", route["destination"])
                if target:
                    next_hop = route["properties"]["next_router_addr"].split(".")[2]
                    seen[int(target[1])][int(next_hop)] += 1
        hops[int(node.name.split(".")[-1])] = {target: next.most_common(1)[0][0] for target, next in seen.items()}
    return hops


def path(hops, source, target):
    way = [source]
    while way[-1] != target:
        following = hops.get(way[-1], {}).get(target)
        if following is None or following in way:
            return None
        way.append(following)
    return way


def main():
    data = pathlib.Path(sys.argv[1]) / "tests" / "data"
    print("set,hops,bound_kbps,measured_kbps")
    for name, measured, routes in SETS:
        carried, hops = goodputs(data / measured), next_hops(data / f"{routes}_crash")
        ways = {pair: path(hops, *pair) for pair in carried}
        alone = {pair: carried[pair] for pair, way in ways.items() if way and len(way) == 2}
        rows = []
        for pair, way in ways.items():
            pairs = list(zip(way, way[1:])) if way else []
            if len(pairs) < 2 or any(hop not in alone for hop in pairs):
                continue
            times = [1 / alone[hop] for hop in pairs]
            windows = range(max(1, len(times) - REUSE + 1))
            bound = 1 / max(sum(times[first : first + REUSE]) for first in windows)
            rows.append((len(pairs), round(bound), round(carried[pair])))
        for row in sorted(rows):
            print(name, *row, sep=",")


main()
