"""The largest total of a placement under a least fairness, by constraints of cliques: a line to hold totals against.

Model. That of clique.py beside this file: the air time of each clique of links is at most 1, without ACKs and collisions. The largest sum of rates with
a Jain's index of at least J is a linear program with one cone, |r| <= sum r / sqrt(n J); planes that touch the cone are added until it holds. Needs SciPy.

    meshpace run FILE --seed 1 --record run.stream        # of the stream only the header counts: nodes and flows
    python3 validation/layouts/bound.py 0.3,0.478,0.6 run.stream ...

Prints the largest total, kbit/s: without a bound on fairness, with each J, and the total and J of proportional fairness (the largest sum of logarithms).
"""

import json
import math
import sys

from clique import CAPACITY, SENSED, cliques, route
from scipy.optimize import linprog


def constraints(file):
    """How often each flow uses a link of each clique."""
    head = json.loads(open(file).readline())
    positions = head["nodes"]
    routes = [route(positions, flow["from"], flow["to"]) for flow in head["flows"]]
    links = {link for links in routes for link in links}
    disturbs = lambda a, b: any(math.dist(positions[i], positions[j]) <= SENSED for i in a for j in b)
    return [list(use) for use in {tuple(sum(link in clique for link in links) for links in routes) for clique in cliques(links, disturbs)}]


def jain(rates):
    return sum(rates) ** 2 / (len(rates) * sum(rate * rate for rate in rates))


def largest(uses, fairness):
    """The rates with the largest sum and Jain's index of at least `fairness`."""
    n, rows, bounds = len(uses[0]), list(uses), [CAPACITY] * len(uses)
    while True:
        rates = list(linprog([-1] * n, A_ub=rows, b_ub=bounds, bounds=(0, None)).x)
        if jain(rates) >= fairness * (1 - 1e-3):
            return rates
        norm = math.hypot(*rates)
        rows.append([rate / norm - 1 / math.sqrt(n * fairness) for rate in rates])
        bounds.append(0.0)


def proportional(uses):
    """The rates with the largest sum of logarithms: prices of cliques rise while they are too full."""
    prices = [1e-3] * len(uses)
    for _ in range(4000):
        rates = [1 / max(1e-9, sum(p * use[i] for p, use in zip(prices, uses))) for i in range(len(uses[0]))]
        full = [sum(map(lambda u, r: u * r, use, rates)) / CAPACITY for use in uses]
        prices = [p * math.exp(0.05 * (f - 1)) for p, f in zip(prices, full)]
    return [rate / max(full) for rate in rates]


if __name__ == "__main__":
    levels = [0.0] + [float(level) for level in sys.argv[1].split(",")]
    for file in sys.argv[2:]:
        uses = constraints(file)
        fair = proportional(uses)
        print(file, *(f"{sum(largest(uses, level)):.0f}" for level in levels), f"{sum(fair):.0f} {jain(fair):.3f}")
