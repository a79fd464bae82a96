"""The max-min rates of a layout of this directory, as a line to hold goodputs against.

Model. Two links of routes disturb each other if an end of one senses an end of the other (550 m). Links that all disturb each other have one channel
between them: the air time of each such clique is at most 1. A link carries at most 1539 kbit/s, what constant-rate UDP of 1460 bytes has over one hop.
Rates are filled up together until a clique is full, whose flows then stay (progressive filling). It is an upper bound of the fair share: it knows no ACKs,
no collisions, and cliques are necessary and not sufficient for a schedule.

    python3 validation/layouts/clique.py validation/layouts/*.toml
"""

import math
import re
import sys
from collections import deque

HEARD, SENSED = 250, 550  # metres
CAPACITY = 1539  # kbit/s


def read(file):
    """Positions of the nodes, and the ends of the flows."""
    text = open(file).read()
    positions = [(float(x), float(y)) for x, y in re.findall(r'\["(-?\d+) m", ?"(-?\d+) m"\]', text)]
    flows = [(int(a), int(b)) for a, b in re.findall(r"from = (\d+)\nto = (\d+)", text)]
    return positions, flows


def route(positions, source, destination):
    """The links of a shortest path."""
    before, queue = {source: None}, deque([source])
    while queue:
        node = queue.popleft()
        for other, place in enumerate(positions):
            if other not in before and math.dist(positions[node], place) <= HEARD:
                before[other] = node
                queue.append(other)
    links, node = [], destination
    while before[node] is not None:
        links.append((min(node, before[node]), max(node, before[node])))
        node = before[node]
    return links


def cliques(links, disturbs):
    """Every maximal clique (Bron and Kerbosch, CACM 1973)."""
    beside = {link: {other for other in links if other != link and disturbs(link, other)} for link in links}
    found = []

    def grow(clique, candidates, done):
        if not candidates and not done:
            found.append(clique)
        for link in list(candidates):
            grow(clique | {link}, candidates & beside[link], done & beside[link])
            candidates, done = candidates - {link}, done | {link}

    grow(set(), set(links), set())
    return found


def max_min(file):
    """The rate of each flow, kbit/s."""
    positions, flows = read(file)
    routes = [route(positions, *flow) for flow in flows]
    links = {link for links in routes for link in links}
    disturbs = lambda a, b: any(math.dist(positions[i], positions[j]) <= SENSED for i in a for j in b)
    uses = [[sum(link in clique for link in links) for links in routes] for clique in cliques(links, disturbs)]
    rates, free = [0.0] * len(flows), set(range(len(flows)))
    while free:
        spare = lambda use: CAPACITY - sum(rate * times for i, (rate, times) in enumerate(zip(rates, use)) if i not in free)
        level = min(spare(use) / sum(use[i] for i in free) for use in uses if any(use[i] for i in free))
        rates = [level if i in free else rate for i, rate in enumerate(rates)]
        full = [use for use in uses if abs(sum(map(lambda r, t: r * t, rates, use)) - CAPACITY) < 1e-6]
        free -= {i for use in full for i in free if use[i]}
    return rates


if __name__ == "__main__":
    for file in sys.argv[1:]:
        print(file, *(f"{rate:.1f}" for rate in max_min(file)))
