"""Records of runs."""

from __future__ import annotations

import json
import os
import warnings
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping, Sequence

from . import _native
from ._table import Table as Table
from ._toml import values as _values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Number of lines that are read at a time.
_AT_ONCE = 1024


class Results:
    """Records of a campaign, in its order: as dictionaries, and as tables for pandas, polars, pyarrow and other programs that read Arrow.

    ``results.runs`` has one row per run, ``results.flows`` one per flow of each run; the object itself stands for ``runs``:
    ``results.flows.to_pandas()``, ``pandas.DataFrame(results.flows)``, ``polars.DataFrame(results)``, ``pyarrow.table(results.runs)``. Columns have
    the names of the fields of a record. A table is made while it is read, so it may be larger than memory. Results can be pickled.
    """

    def __init__(self, records: _native.Records, name: str, failed: list[tuple[str, str]], total: int, *, text: str, sets: list[str], command: str) -> None:
        self._records = records
        self._text, self._sets, self._command = text, sets, command
        #: Name of the scenario.
        self.name = name
        #: Runs that failed, each with its description and the reason.
        self.failed = failed
        #: Number of runs of the campaign.
        self.total = total

    @property
    def complete(self) -> bool:
        """True if every run has a record."""
        return len(self) == self.total

    def __len__(self) -> int:
        return len(self._records)

    def lines(self) -> Iterator[str]:
        """The lines that ``meshpace run --format json`` writes, without their ends."""
        first = 0
        while lines := self._records.lines(first, _AT_ONCE):
            yield from lines
            first += len(lines)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (json.loads(line) for line in self.lines())

    @property
    def starved(self) -> list[str]:
        """Starved flows, one sentence each: flows that delivered nothing, or nothing for more than a tenth of the measured time.

        Read this list before any mean. A flow that delivers nothing has no delay, so a variant that starves it may look better
        than a variant that serves every flow.
        """
        return self._records.starved()[0]

    def where(self, conditions: Mapping[str, Any]) -> Results:
        """The records of some points of the sweep, as ``--where`` of the command selects them: ``{"topology.hops": [4, 7], "flow.transport": "tcp-ap"}``.

        Each key has one value or a sequence of values, and all keys must match. The result can be used with ``compare``, tables and
        plots.

        Raises :class:`meshpace.RecordsError` if the records have no such key or value; the message lists those that exist.
        """
        selected = self._records.where([f"{key}={_values(wanted)}" for key, wanted in conditions.items()])
        words = "".join(f" --where '{key}={_values(wanted)}'" for key, wanted in conditions.items())
        missing = self.total - len(self)
        return Results(selected, self.name, self.failed, len(selected) + missing, text=self._text, sets=self._sets, command=self._command + words)

    @property
    def runs(self) -> Table:
        """One row per run."""
        return Table(self._records.runs())

    @property
    def flows(self) -> Table:
        """One row per flow of each run."""
        return Table(self._records.flows())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.runs.__arrow_c_stream__(requested_schema)

    def report(self, page: str | os.PathLike[str]) -> None:
        """Writes the page of plots that ``meshpace report`` writes, with every plot as SVG and its numbers as CSV beside it.

        The settings are in ``[plot]`` of the scenario.
        """
        _native.report(self._records, os.fspath(page), self.name, self._command, self._text, self._sets)

    def plot(
        self,
        y: str = "aggregate_goodput_bps",
        x: str | None = None,
        *,
        by: str | None = None,
        where: Callable[[dict[str, Any]], bool] | None = None,
        flow: int | str | Sequence[int | str] | None = None,
        ax: Axes | None = None,
    ) -> Axes:
        """Draws a field against a key of the sweep, means over the seeds with 95 % confidence intervals; needs matplotlib (``meshpace[plot]``).

        The default of ``x`` is the first key with numbers. Runs at points without ``x`` are left out, and the title names them or their parts. Without ``by``, there is a curve for each combination of the other keys.
        ``where`` selects records.

        A field of flows (``delay_p95_s``, ``pacing.interval_s``) has a curve for each flow; ``flow`` selects flows by number or by
        name. ``retransmission_index`` is a field of runs and of flows; with ``flow``, that of the flows is drawn. A value that
        could not be measured is left out.
        """
        from .plot import plot

        return plot(self, y=y, x=x, by=by, where=where, flow=flow, ax=ax)

    def figure(
        self,
        quantity: str,
        file: str | os.PathLike[str],
        *,
        x: str | None = None,
        lines: Sequence[str] | None = None,
        panel: str | None = None,
        width: str | float | None = None,
        height: float | None = None,
        labels: dict[str, str] | None = None,
        shifted: bool | None = None,
    ) -> Figure:
        """Writes the plot of a quantity (``goodput``, ``jain``, ``delay``, ...) on the page of :meth:`report` as a figure for a paper; needs matplotlib.

        Titles, labels, colours and sizes are those of ``[plot]`` unless the call gives others. ``width`` is ``"column"`` (3.5 inches, the default), ``"page"`` (7.16 inches)
        or a number of inches. A PDF has embedded subsets of TrueType fonts, no text is smaller than 7 pt, and lines differ in marker and
        dashes besides their colour. ``labels`` replaces titles and names of lines. ``x`` and ``lines`` override the settings in
        ``[plot]``; ``panel`` selects one of several panels. With ``shifted``, the points of several lines at the same x are drawn
        side by side.
        """
        from ._paper import figure

        return figure(self, quantity, file, x=x, lines=lines, panel=panel, width=width, height=height, labels=labels, shifted=shifted)

    def table(
        self,
        quantity: str,
        file: str | os.PathLike[str],
        *,
        x: str | None = None,
        lines: Sequence[str] | None = None,
        panel: str | None = None,
        labels: dict[str, str] | None = None,
    ) -> str:
        """Writes the numbers of :meth:`figure` as a table, and returns its text.

        A ``.tex`` file (booktabs, siunitx) has a row for each number or name on the axis and a column for each line. A ``.csv`` file has a row
        for each point.
        """
        from ._paper import table

        return table(self, quantity, file, x=x, lines=lines, panel=panel, labels=labels)

    def __reduce__(self) -> tuple[Any, ...]:
        about = {"text": self._text, "sets": self._sets, "command": self._command}
        return _restored, (list(self.lines()), self.name, self.failed, self.total, about)

    def __repr__(self) -> str:
        missing = "" if self.complete else f" of {self.total}"
        starved = self._records.starved()[1]
        told = f", a flow starved in {starved} of them (see .starved)" if starved else ""
        return f"<meshpace.Results of {self.name!r}, {len(self)}{missing} runs{told}>"


def _restored(lines: list[str], name: str, failed: list[tuple[str, str]], total: int, about: dict[str, Any]) -> Results:
    return Results(_native.records(lines), name, failed, total, **about)


def open_records(directory: str | os.PathLike[str]) -> Results:
    """The records of a directory, written by this package or by ``meshpace run --out`` and ``meshpace reproduce``.

    A :class:`RuntimeWarning` reports an unfinished campaign, and records of another revision of the model.
    """
    records, text, notes = _native.open(os.fspath(directory))
    for sentence in notes:
        warnings.warn(sentence, RuntimeWarning, stacklevel=2)
    manifest = json.loads(text)
    total = len(records) + int(manifest["failed_runs"])
    if not manifest["complete"]:
        total = max(total, int(manifest["points"]) * int(manifest["seeds"]))
    command = f"meshpace report {os.fspath(directory)}"
    text, sets = manifest["scenario_text"], manifest["set"]
    return Results(records, manifest["scenario"], [], total, text=text, sets=sets, command=command)
