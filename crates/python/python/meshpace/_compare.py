"""Comparison of two sets of records."""

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

#: Smallest number of seeds for which an interval is meaningful.
_LEAST = 3

_log = logging.getLogger("meshpace")


@dataclass(frozen=True)
class Robustness:
    """Whether an answer holds under other models, one choice at a time: ``docs/robust.md``."""

    #: Number of other models with which the answer is the same, and number of other models.
    holds: int
    of: int
    #: Models with which the other side is better, or with which one side is better although neither
    #: was with the model as written.
    flips_with: tuple[str, ...]
    #: Models with which the better side starves a flow.
    starves_with: tuple[str, ...]
    #: Models with which no side can be called better.
    cannot_be_told_with: tuple[str, ...]
    #: Models that could not be tried, with the reason.
    not_applicable: dict[str, str]
    #: Models whose runs have the same fingerprints as those with the scenarios as written, so that
    #: the model has no effect here. They are counted in ``holds`` and ``of``.
    changes_nothing_with: tuple[str, ...]
    #: Comparison under each model, as ``meshpace compare --robust --format json`` writes it.
    models: tuple[dict[str, Any], ...]
    #: The result as a sentence.
    words: str


@dataclass(frozen=True)
class Difference:
    """Difference in one metric: the second side minus the first."""

    #: Name of the metric, which is a field of records.
    metric: str
    #: Means of both sides, and their difference. ``None`` if a flow was starved: a starved flow has
    #: no delay, which is worse than any number.
    a: float | None
    b: float | None
    difference: float | None
    #: The 95 % confidence interval of the difference; ``None`` with fewer than three runs on a
    #: side.
    interval: tuple[float, float] | None
    #: Number of seeds that were compared in pairs; 0 if the sides have no seeds in common.
    seeds: int
    #: The better side by this metric alone: zero is outside of the interval, and the side starves
    #: no flow. ``None`` if there is no such side.
    better: str | None
    #: Numbers of runs of ``a`` and ``b`` in which a flow was starved.
    starved: tuple[int, int]
    #: The result as a sentence.
    words: str
    #: Result of the tests under other models; ``None`` unless these were requested.
    robust: Robustness | None = None
    #: Two-sided p-value of the test to which the interval belongs, and this value after Holm's
    #: correction for all metrics of the comparison.
    p: float | None = None
    p_holm: float | None = None
    #: The better side, if the difference is still clear after the correction. The sentence states
    #: this side.
    better_in_family: str | None = None
    #: The metric at each point of the swept keys, as ``meshpace compare --format json`` writes it.
    #: All other fields concern the means over the points.
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
    """Compares two scenarios, results or directories of records as ``meshpace compare`` does: metric by metric, in pairs of equal seeds.

    Scenarios are run with ``seeds`` seeds from ``seed`` on (default: the scenario's number, but at least three), ``jobs`` runs at
    a time.

    With ``robust=True``, the comparison is also made under other models, one choice at a time (medium access, routing and its
    repair, reception, RTS, carrier sense, windows, queues). ``robust`` of each difference then says with which models the answer
    holds. Both sides must be scenarios. Each model takes about as long as the comparison itself; the logger ``meshpace`` reports
    the number of runs and frames, and ``progress`` is called as in a campaign.

    Raises :class:`ValueError` if ``robust`` is requested for records.
    """
    if robust and not (isinstance(a, Scenario) and isinstance(b, Scenario)):
        raise ValueError("robust: existing records cannot be repeated under another model; compare the scenario files instead")

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
