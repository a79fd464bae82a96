"""Bounded model of the control law of quiet trains: does it hold under jitter, and if not, how does it fail?

In the manner of CCAC (Arun, Arashloo, Saeed, Alizadeh, Balakrishnan, "Toward Formally Verifying Congestion Control Behavior", SIGCOMM 2021): an SMT
solver looks for a run in which the sender fails, over all starts and over everything that the network may do. `unsat` is a proof for that bounded
model, `sat` comes with the run. The law is that of docs/quiet-trains.md, delays in units of b, the delay borne at the floor:

    want = floor max(1, d^(2/3)),   log I += g (log want - log I) after each train

Model. A step is a train of each flow. Intervals are floor 1.25^k with whole k from 0 to 15. Flows of rate x (1 at the floor) share a path that carries 1. A train
begins on an empty path, so its mean delay by the queue is T/2 (x1 + x2 - 1) where that is above 0, with T the length of a train. The network adds a jitter from 0 to D to
each train of each flow as it likes. A sender subtracts the least delay that it has seen; what it had seen before the run is the network's choice, too.
g = 1/4, as 1 - exp(-0.3) is for trains of a second; k goes to the nearest whole number, which of two is the solver's choice, and leaves a level that is not wanted.

Left out: the smoothing of delays over a second, the 0.3 ms per hop that count as no queue, losses, time-outs, trains that begin at different times, company (over three hops at most).

Properties, over the last STEPS - SETTLE steps, from any start:

    one flow    utilisation at least 1/2
    two flows   utilisation at least 1/2;  no flow has less than a tenth of what both have (asked of one: they are alike)

D is in units of R = 2^1.5 b, the delay of two equal flows in equilibrium: what the law tells one flow from two by.

    pip install z3-solver
    python3 validation/law/law.py                the table and the counter-examples
"""

import argparse
import sys
import time

from z3 import UGE, ULE, ULT, BitVec, BitVecVal, If, Implies, SolverFor, ZeroExt, sat, unsat

RATIO = 1.25  # from one interval to the next
LEVELS = 16  # floor 1.25^15 is 28 floors; the law's largest interval is 30 tau
EXPONENT = 1.5
RANGE = 2**EXPONENT  # R in units of b
# A train lasts 1 s. b = 0.09 scale tau; over 7 hops of 2 Mbit/s tau is 35 ms and scale 2.125: T/b = 149.
TRAIN = 1 / (0.09 * 2.125 * 0.035)
STEPS, SETTLE = 16, 8
STARVED = 10  # a flow with less than a tenth

# Numbers of the solver are whole and have 16 bits. A rate of 1 is UNIT; a delay is counted so that the queue is the excess of the rates.
BITS, UNIT = 16, 4096
RATES = [round(UNIT * RATIO**-k) for k in range(LEVELS)]


def delay(in_b):
    """A delay in units of b as the solver counts it."""
    return round(in_b * UNIT / (TRAIN / 2))


BORNE = [delay(RATIO ** (EXPONENT * k)) for k in range(LEVELS)]  # delay of equilibrium at each level


def number(value):
    return BitVecVal(value, BITS)


def rate(level):
    """Rate at a level."""
    value = number(RATES[-1])
    for k in reversed(range(LEVELS - 1)):
        value = If(level == k, number(RATES[k]), value)
    return value


def wanted(seen):
    """Level that the law wants: the greatest whose delay of equilibrium is not above what is seen."""
    value = number(0)
    for k in range(1, LEVELS):
        value = If(UGE(seen, number(BORNE[k])), number(k), value)
    return value


def total(values):
    """Sum of many."""
    values = [ZeroExt(16, value) for value in values]
    first = values[0]
    for value in values[1:]:
        first = first + value
    return first


class Run:
    """All runs of `flows` flows under a jitter of at most `jitter`, in units of b."""

    def __init__(self, solver, flows, jitter):
        variables = lambda name: [[BitVec(f"{name}{flow}_{step}", BITS) for step in range(STEPS)] for flow in range(flows)]
        self.levels, self.jitters, self.used = variables("k"), variables("j"), []
        self.rates = [[rate(level) for level in levels] for levels in self.levels]
        most = number(delay(jitter))
        bases = [BitVec(f"base{flow}", BITS) for flow in range(flows)]
        for base in bases:
            solver.add(ULE(base, most))
        for step in range(STEPS):
            offered = number(0)
            for rates in self.rates:
                offered = offered + rates[step]
            is_full = UGE(offered, number(UNIT))
            queue = If(is_full, offered - number(UNIT), number(0))
            self.used.append(If(is_full, number(UNIT), offered))
            for flow in range(flows):
                level, j = self.levels[flow][step], self.jitters[flow][step]
                solver.add(ULT(level, number(LEVELS)), ULE(j, most))
                seen = queue + j
                bases[flow] = If(ULT(seen, bases[flow]), seen, bases[flow])
                if step + 1 == STEPS:
                    continue
                # Four times the next level, with g = 1/4: 3 k + want, to the nearest. A level that is not the wanted one is left.
                want, after = wanted(seen - bases[flow]), self.levels[flow][step + 1]
                aimed = number(3) * level + want
                solver.add(ULE(aimed, number(4) * after + number(2)), ULE(number(4) * after, aimed + number(2)))
                solver.add(Implies(ULT(level, want), ULT(level, after)), Implies(ULT(want, level), ULT(after, level)))


def fails(flows, jitter, what, seconds):
    """A run that breaks `what` under `jitter` times R: None if there is none, "?" if the solver gave up."""
    solver = SolverFor("QF_BV")
    solver.set("timeout", int(1000 * seconds))
    run = Run(solver, flows, jitter * RANGE)
    if what == "utilisation":
        solver.add(ULT(total(run.used[SETTLE:]), BitVecVal(UNIT * (STEPS - SETTLE) // 2, 32)))
    else:
        first, both = total(run.rates[0][SETTLE:]), total(run.rates[0][SETTLE:] + run.rates[1][SETTLE:])
        solver.add(ULT(first * BitVecVal(STARVED, 32), both))
    answer = solver.check()
    if answer == unsat:
        return None
    if answer != sat:
        return "?"
    model = solver.model()
    value = lambda term: model.eval(term, model_completion=True).as_long()
    return {
        "intervals": [[RATIO ** value(level) for level in levels] for levels in run.levels],
        "jitters": [[value(j) * (TRAIN / 2) / UNIT for j in jitters] for jitters in run.jitters],
    }


def told(run):
    """A run in lines: intervals in floors, jitter in units of R."""
    lines = []
    for flow, (intervals, jitters) in enumerate(zip(run["intervals"], run["jitters"])):
        lines.append(f"    flow {flow}, I/floor  " + " ".join(f"{interval:5.1f}" for interval in intervals))
        lines.append(f"    flow {flow}, jitter/R " + " ".join(f"{j / RANGE:5.2f}" for j in jitters))
    return "\n".join(lines)


CASES = [(1, "utilisation"), (2, "utilisation"), (2, "starvation")]
NAMES = ["one flow, utilisation below 1/2", "two flows, utilisation below 1/2", "two flows, one below a tenth"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jitter", type=float, nargs="*", default=[0, 0.5, 1, 2, 4], help="D in units of R")
    parser.add_argument("--seconds", type=float, default=300, help="of the solver for each question")
    options = parser.parse_args()
    print("| D / R | " + " | ".join(NAMES) + " |\n|---|" + "---|" * len(CASES))
    traces, gave_up = [], False
    for jitter in options.jitter:
        row = []
        for (flows, what), name in zip(CASES, NAMES):
            began = time.monotonic()
            run = fails(flows, jitter, what, options.seconds)
            print(f"{name}, D = {jitter} R: {time.monotonic() - began:.1f} s", file=sys.stderr)
            gave_up |= run == "?"
            row.append({None: "never (proved)", "?": "not decided"}.get(run, "possible") if not isinstance(run, dict) else "possible")
            if isinstance(run, dict):
                traces.append(f"{name}, D = {jitter} R:\n{told(run)}")
        print(f"| {jitter:g} | " + " | ".join(row) + " |", flush=True)
    print("\n" + "\n".join(traces))
    return 1 if gave_up else 0


if __name__ == "__main__":
    sys.exit(main())
