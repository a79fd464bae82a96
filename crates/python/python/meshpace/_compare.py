"""Two sets of records against each other."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass
from typing import Any, Union, cast

from . import _native
from ._campaign import Campaign, ProgressArgument, _progress
from ._errors import RunError
from ._results import Results, open_records
from ._scenario import Scenario

Side = Union[Results, Scenario, str, "os.PathLike[str]"]

#: Seeds below which an interval would say nothing.
_LEAST = 3

_log = logging.getLogger("meshpace")


@dataclass(frozen=True)
class Robustness:
    """Whether an answer holds under other models, one choice at a time: ``docs/robust.md``."""

    #: With how many of the other models it is the same, and how many there are.
    holds: int
    of: int
    #: Models with which the other side is better, or one is where neither was.
    flips_with: tuple[str, ...]
    #: Models with which the side that is ahead starves a flow.
    starves_with: tuple[str, ...]
    #: Models with which it cannot be told who is better.
    cannot_be_told_with: tuple[str, ...]
    #: Models that could not be tried, with the reason.
    not_applicable: dict[str, str]
    #: Models whose runs are those of the scenarios as written, by their fingerprints: they change nothing here. They are counted in ``holds`` and ``of``.
    changes_nothing_with: tuple[str, ...]
    #: The comparison under each model, as ``meshpace compare --robust --format json`` has it.
    models: tuple[dict[str, Any], ...]
    #: The sentence.
    words: str


@dataclass(frozen=True)
class Difference:
    """How a metric differs: the second side less the first."""

    #: The metric, a field of records.
    metric: str
    #: Means of both sides, and their difference. None where a flow was starved: a starved flow has no delay, which is worse than any number.
    a: float | None
    b: float | None
    difference: float | None
    #: The 95 % confidence interval of the difference; none with fewer than three runs on a side.
    interval: tuple[float, float] | None
    #: Seeds that were compared in pairs; 0 if there were none in common.
    seeds: int
    #: The better side by this metric alone: the interval has no zero in it, and that side starves no flow. None if there is no such side.
    better: str | None
    #: Runs of a and of b in which a flow was starved.
    starved: tuple[int, int]
    #: The sentence.
    words: str
    #: Whether it holds under other models; none unless that was asked.
    robust: Robustness | None = None
    #: Two-sided p-value of the test that the interval belongs to, and the same after Holm's correction for all metrics of the comparison.
    p: float | None = None
    p_holm: float | None = None
    #: The better side, if it is still clear after that correction. The sentence says this.
    better_in_family: str | None = None
    #: The same metric at each point of the keys that are swept, as ``meshpace compare --format json`` has it; the other fields are of the means over them.
    points: tuple[dict[str, Any], ...] = ()


def compare(
    a: Side,
    b: Side,
    *,
    robust: bool = False,
    seed: int = 1,
    seeds: int | None = None,
    jobs: int | None = None,
    progress: ProgressArgument = None,
) -> list[Difference]:
    """What ``meshpace compare`` says of two scenarios, results or directories of records: metric by metric, in pairs of equal seeds.

    Scenarios are run, with ``seeds`` seeds from ``seed`` on (the scenario's number, but at least three), ``jobs`` runs at a time.

    With ``robust=True`` the same comparison is made under other models, one choice at a time (medium access, routing and its repair, reception, RTS, carrier
    sense, windows, queues), and ``robust`` of each difference says with which of them the answer holds. Both sides have to be scenarios then. It takes about as
    long again for each model; the logger ``meshpace`` says how many runs and frames, and ``progress`` is called as in a campaign.

    Raises :class:`ValueError` if ``robust`` is asked of records.
    """
    if robust and not (isinstance(a, Scenario) and isinstance(b, Scenario)):
        raise ValueError("robust: records cannot be made again under another model; compare their scenarios")

    def run(scenario: Scenario, told: ProgressArgument) -> Results:
        results = Campaign(scenario, seed=seed, seeds=max(scenario.seeds, _LEAST) if seeds is None else seeds).run(jobs=jobs, progress=told)
        if results.failed:
            raise RunError("{} failed: {}".format(*results.failed[0]))
        return results

    def records(side: Side) -> Results:
        if isinstance(side, Scenario):
            return run(side, None)
        return side if isinstance(side, Results) else open_records(side)

    one, other = records(a), records(b)
    names = ("a", "b")
    if not robust:
        text = _native.compare(one._records, other._records, names)
    else:
        models = _native.models([cast(Scenario, a)._native, cast(Scenario, b)._native])
        refused = [(model, why) for model, why, _ in models if why is not None]
        made = [(model, [Scenario._of(native) for native in scenarios]) for model, why, scenarios in models if why is None]
        runs = len(one) + len(other)
        frames = sum(record["frames"] for results in (one, other) for record in results)
        _log.info("robust: %d other models, %d runs, about %d frames", len(made), len(made) * runs, len(made) * frames)
        told, closing = _progress(progress, "other models")
        others = []
        try:
            for number, (model, sides) in enumerate(made):
                results = []
                for part, scenario in enumerate(sides):
                    behind = 2 * number + part

                    def tell(done: int, total: int, share: float, behind: int = behind) -> None:
                        if told is not None:
                            told(min(behind * total + done, len(made) * runs), len(made) * runs, (behind + share) / (2 * len(made)))

                    results.append(run(scenario, tell if told is not None else None))
                others.append((model, results[0]._records, results[1]._records))
        finally:
            if closing is not None:
                closing.close()
        text = _native.compare_robustly(one._records, other._records, others, refused, names)
    return [_difference(line) for line in json.loads(text)]


def _difference(line: dict[str, Any]) -> Difference:
    fields: dict[str, Any] = {name: line.get(name) for name in Difference.__dataclass_fields__}
    interval = line.get("interval")
    fields["interval"] = tuple(interval) if isinstance(interval, list) else None
    fields["points"] = tuple(line.get("points", ()))
    fields["starved"] = tuple(side["starved_runs"] for side in line["counts"])
    if line.get("robust") is not None:
        found = dict(line["robust"])
        found["not_applicable"] = {model["model"]: model["why"] for model in found["not_applicable"]}
        for name in ("flips_with", "starves_with", "cannot_be_told_with", "changes_nothing_with", "models"):
            found[name] = tuple(found[name])
        fields["robust"] = Robustness(**found)
    return Difference(**fields)
