"""Repeats published experiments."""

from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Iterator, Sequence, overload

from . import _native
from ._campaign import ProgressArgument, _jobs, _progress

if TYPE_CHECKING:
    from ._campaign import Executor


@dataclass(frozen=True)
class Verdict:
    """Verdict on a published claim or number."""

    #: Id of the experiment, and text of the claim.
    experiment: str
    claim: str
    #: Published number, or the smallest and the largest one. ``None`` if the claim contains no
    #: number.
    published: Any
    #: Our number, and the ends of its interval. ``None`` if the verdict depends on several numbers.
    measured: float | None
    interval: list[float] | None
    #: Unit of the published number, our number and the interval.
    unit: str
    #: "reproduced", "reproduced in shape", "differs", "cannot be told" or "cannot be judged".
    verdict: str
    #: Cause of a verdict other than "reproduced".
    cause: str | None
    #: Command that makes the records again.
    command: str
    #: Numbers on which the verdict depends, in words.
    evidence: str
    #: Revision of the model that made the records.
    model: int


def _ends(value: Any) -> tuple[float | None, float | None]:
    if isinstance(value, list):
        return value[0], value[1]
    return value, value


class Verdicts(Sequence[Verdict]):
    """Verdicts as a sequence, as text, as HTML in a notebook, and as a table for programs that read Arrow."""

    def __init__(self, verdicts: list[Verdict], notes: list[str]) -> None:
        self._verdicts = verdicts
        #: Messages from the runs.
        self.notes = notes

    @overload
    def __getitem__(self, index: int) -> Verdict: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Verdict]: ...
    def __getitem__(self, index: int | slice) -> Verdict | Sequence[Verdict]:
        return self._verdicts[index]

    def __len__(self) -> int:
        return len(self._verdicts)

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self._verdicts)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        def line(verdict: Verdict) -> str:
            published, interval = _ends(verdict.published), _ends(verdict.interval)
            return json.dumps(
                {
                    "experiment": verdict.experiment,
                    "claim": verdict.claim,
                    "published_low": published[0],
                    "published_high": published[1],
                    "measured": verdict.measured,
                    "low": interval[0],
                    "high": interval[1],
                    "unit": verdict.unit,
                    "verdict": verdict.verdict,
                    "cause": verdict.cause,
                    "command": verdict.command,
                    "evidence": verdict.evidence,
                    "model": verdict.model,
                }
            )

        return _native.table([line(verdict) for verdict in self]).__arrow_c_stream__(requested_schema)

    def __str__(self) -> str:
        return "\n".join(f"{verdict.experiment:<10} {verdict.verdict:<20} {verdict.claim}" for verdict in self)

    def _repr_html_(self) -> str:
        def cell(value: object) -> str:
            shown = f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)
            return f"<td>{html.escape(shown)}</td>"

        names = ["experiment", "claim", "published", "measured", "unit", "verdict"]
        head = "".join(f"<th>{name}</th>" for name in names)
        rows = "".join("<tr>" + "".join(cell(getattr(verdict, name)) for name in names) + "</tr>" for verdict in self)
        return f"<table><tr>{head}</tr>{rows}</table>"


def experiments() -> dict[str, str]:
    """The published experiments by id, each with its title."""
    return dict(_native.experiments())


def reproduce(
    *ids: str,
    quality: str = "quick",
    seeds: int | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    readings: bool = False,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: ProgressArgument = None,
) -> Verdicts:
    """Repeats published experiments, by id (``"AP05-F14"``), paper (``"AP05"``) or ``"all"``, and judges them.

    ``quality`` is ``"quick"`` or ``"paper"``. ``readings`` also runs other readings of the papers, which the report shows and the
    verdicts ignore; paper quality always runs them. With ``out``, the records, the report and ``verdicts.json`` are kept in that
    directory, in the form of ``meshpace reproduce --out``.
    """
    from ._remote import carry

    if quality not in ("quick", "paper"):
        raise ValueError(f"quality: {quality!r} is neither 'quick' nor 'paper'")
    if not ids:
        raise ValueError("which experiments? 'all', a paper such as 'AP05', or ids such as 'AP05-F14'")
    told, closing = _progress(progress, ", ".join(ids))
    carrier = None if executor is None else carry(executor)
    directory = None if out is None else os.fspath(out)
    try:
        paper = quality == "paper"
        text, notes = _native.reproduce(list(ids), paper, readings, seeds, directory, force, _jobs(jobs), told, carrier)
    finally:
        if carrier is not None:
            carrier.cancel()
        if closing is not None:
            closing.close()
    return Verdicts([Verdict(**entry) for entry in json.loads(text)], notes)
