"""Two sets of records against each other."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Union

from . import _native
from ._results import Results, open_records

Side = Union[Results, str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Difference:
    """How a metric differs: the second side less the first."""

    #: The metric, a field of records.
    metric: str
    #: Means of both sides, and their difference. A delay of which a starved flow is a part is none, which outranks any number.
    a: float | None
    b: float | None
    difference: float | None
    #: The 95 % interval of the difference; none with fewer than three runs on a side.
    interval: tuple[float, float] | None
    #: Seeds that were compared in pairs; 0 if there were none in common.
    seeds: int
    #: Which side is better, if it is sure and that side starves no flow.
    better: str | None
    #: Runs of a and of b in which a flow was starved.
    starved: tuple[int, int]
    #: The sentence.
    words: str


def compare(a: Side, b: Side) -> list[Difference]:
    """What ``meshpace compare`` says of two results or directories of records: metric by metric, in pairs of equal seeds."""
    sides = [side if isinstance(side, Results) else open_records(side) for side in (a, b)]
    text = _native.compare(sides[0]._records, sides[1]._records, ("a", "b"))

    def difference(line: dict[str, object]) -> Difference:
        interval = line.get("interval")
        fields = {name: line.get(name) for name in Difference.__dataclass_fields__}
        fields["interval"] = tuple(interval) if isinstance(interval, list) else None
        counts = line["counts"]
        fields["starved"] = tuple(side["starved_runs"] for side in counts)  # type: ignore[attr-defined]
        return Difference(**fields)  # type: ignore[arg-type]

    return [difference(line) for line in json.loads(text)]
