"""Campaigns: many runs."""

from __future__ import annotations

import os
import sys
import warnings
from operator import index
from typing import TYPE_CHECKING, Callable, Protocol, Union

from . import _native
from ._results import Results
from ._scenario import Scenario

if TYPE_CHECKING:
    from concurrent.futures import Executor as _Executor

    from ._remote import Carrier

    Executor = Union[_Executor, Carrier]

#: Is told the runs made, all runs, and the share of the estimated cost that is behind, 0 to 1.
Progress = Callable[[int, int, float], object]
ProgressArgument = Union[Progress, bool, None]


class _Closing(Protocol):
    def close(self) -> None: ...


class _Bar:
    """A line on standard error, or tqdm's bar where that is installed, which notebooks show as their own."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._shown = -1
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]

            self._tqdm = tqdm(total=100, desc=what, unit="%", bar_format="{desc} {percentage:3.0f}% |{bar}| {elapsed} gone, {remaining} left{postfix}")
        except ImportError:
            self._tqdm = None

    def __call__(self, done: int, total: int, share: float) -> None:
        percent = int(100 * share)
        if self._tqdm is not None:
            self._tqdm.set_postfix_str(f"{done}/{total} runs", refresh=False)
            self._tqdm.update(percent - self._tqdm.n)
        elif percent != self._shown or done == total:
            self._shown = percent
            print(f"\r{self._what}: {done}/{total} runs, {percent} % of the work", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._tqdm is not None:
            self._tqdm.close()
        elif self._shown >= 0:
            print(file=sys.stderr)


def _progress(argument: ProgressArgument, what: str) -> tuple[Progress | None, _Closing | None]:
    """What is told, and what is closed afterwards. Only ``True`` shows a bar."""
    if argument is True:
        bar = _Bar(what)
        return bar, bar
    return (argument or None), None


def _jobs(jobs: int | None) -> int:
    if jobs is None:
        available = getattr(os, "sched_getaffinity", None)
        return len(available(0)) if available else (os.cpu_count() or 1)
    if jobs < 1:
        raise ValueError("jobs: at least one run at a time")
    return jobs


class Campaign:
    """Every point of a scenario with its seeds.

    With ``out`` every record is on the disk as soon as it is there, in the form of ``meshpace run --out``: whatever ends the
    program, the same campaign goes on where it was, here or from the shell. Without, records are in memory, and a campaign
    that was interrupted goes on with another call of :meth:`run`.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        seed: int = 1,
        seeds: int | None = None,
        out: str | os.PathLike[str] | None = None,
        force: bool = False,
        until: str | None = None,
        most: int = 400,
    ) -> None:
        """``seed`` is the first of ``seeds`` seeds per point (the scenario's number of seeds unless told). ``force`` makes all runs anew.

        With ``until="goodput 2 %"`` each point gets more seeds, at most ``most``, until half of the 95 % confidence interval of that quantity is within
        that share of its mean. Every point has 20 seeds, or ``seeds`` if that is more. How many each point gets depends on the records alone. A point whose
        interval stays wider is told by a :class:`RuntimeWarning`.

        Other programs may work in ``out`` while this campaign makes no runs. If they change the records, :meth:`run` refuses to go on with
        what this object has read.

        Raises :class:`meshpace.RecordsError` if ``out`` holds another campaign or another process makes runs in it, and
        :class:`ValueError` if a pacing rule has a part that cannot be compared, and no ``id`` (:meth:`meshpace.Scenario.paced`).
        """
        seed, seeds, most = index(seed), index(scenario.seeds if seeds is None else seeds), index(most)
        if seeds < 1 or seed < 0 or seed + seeds > 2**64:
            raise ValueError(f"seeds: {seeds} seeds from {seed} on cannot be had")
        self.scenario = scenario
        directory = None if out is None else os.fspath(out)
        digest, rules = scenario._identified()
        if directory is not None:
            for name, _, identity in rules:
                identity.require_comparable(name)
        manifests = [identity.manifest(name, flows) for name, flows, identity in rules]
        rule = None if until is None else (until, most)
        self._native = _native.Campaign(scenario._native, seed, seeds, directory, force, (digest, manifests), rule)
        amount = f"--seeds {seeds}" + ("" if until is None else f" --until '{until}' --most {most}")
        self._command = f"meshpace run {scenario._native.file} --seed {seed} {amount}"

    @property
    def total(self) -> int:
        """How many runs it has; with ``until`` those of the seeds so far."""
        return self._native.total

    @property
    def done(self) -> int:
        """How many of them are made."""
        return self._native.done()

    def run(
        self,
        *,
        jobs: int | None = None,
        executor: Executor | None = None,
        chunk_seconds: float | None = None,
        progress: ProgressArgument = None,
    ) -> Results:
        """Makes the runs that are missing.

        On ``jobs`` threads (as many as there are processors unless told; Python's lock is free meanwhile), or by an ``executor``:
        any of ``concurrent.futures`` whose workers can import this package, or :func:`meshpace.dask.connect`. It gets chunks of runs, those
        first that take longest, of ``chunk_seconds`` of CPU time each by the estimate (several per worker and 60 s at most unless told);
        the records are the same bytes as those of a local run.

        ``progress`` is called with the runs made, all runs and the share of the work that is behind; ``True`` shows a bar.
        What it raises ends the campaign. So does what a pacing rule raises, and Ctrl-C: the records that are there stay
        (:meth:`results`).

        Runs that fail are in ``failed`` of the results; they do not end the others.
        """
        from ._remote import carry

        if executor is not None and self.scenario.rules:
            raise ValueError(f"executor: the pacing rule {self.scenario.rules[0]!r} is in this process; run it here, with jobs")
        told, closing = _progress(progress, self.scenario.name)
        carrier = None if executor is None else carry(executor)
        try:
            self._native.run(_jobs(jobs), told, carrier, chunk_seconds)
        except Exception as raised:
            # From Python 3.11 on an exception says in which run a pacing rule raised it.
            if self.scenario.rules and hasattr(raised, "add_note"):
                for what, _ in self._native.failed()[:1]:
                    raised.add_note(f"in the run {what}")
            raise
        finally:
            if carrier is not None:
                carrier.cancel()
            if closing is not None:
                closing.close()
        for sentence in self._native.wide():
            warnings.warn(sentence, RuntimeWarning, stacklevel=2)
        results = self.results()
        if results.failed:
            what, why = results.failed[0]
            more = f" and {len(results.failed) - 1} more" if len(results.failed) > 1 else ""
            warnings.warn(f"{what}{more} of {results.total} runs failed, and are in no mean: {why.splitlines()[0] if why else why}", RuntimeWarning, stacklevel=2)
        return results

    def results(self) -> Results:
        """The records that are there."""
        native, scenario = self._native, self.scenario._native
        return Results(
            native.records(),
            scenario.name,
            native.failed(),
            native.total,
            text=scenario.text,
            sets=scenario.sets,
            command=self._command,
        )

    def __repr__(self) -> str:
        return f"<meshpace.Campaign of {self.scenario.name!r}, {self.done} of {self.total} runs made>"
