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

#: Called with the number of finished runs, the number of all runs, and the share of the estimated
#: cost that is finished, 0 to 1.
Progress = Callable[[int, int, float], object]
ProgressArgument = Union[Progress, bool, None]


class _Closing(Protocol):
    def close(self) -> None: ...


class _Bar:
    """A progress line on standard error. If tqdm is installed, its bar, which notebooks show natively."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._shown = -1
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]

            self._tqdm = tqdm(total=100, desc=what, unit="%", bar_format="{desc} {percentage:3.0f}% |{bar}| {elapsed} gone, {remaining} left{postfix}")
        except ImportError:
            self._tqdm = None

    def __call__(self, done: int, total: int, share: float) -> None:
        # The shares of the runs are rounded, so that their sum may be a little less than 1.
        percent = 100 if done == total else int(100 * share)
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
    """Callable for progress, and the object to close afterwards. Only ``True`` shows a bar."""
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

    With ``out``, every record is written to the disk as soon as its run is finished, in the form of ``meshpace run --out``.
    After any end of the program, the same campaign continues where it stopped, in Python or from the shell. Without ``out``,
    records are in memory, and another call of :meth:`run` continues a campaign that was interrupted.
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
        """``seed`` is the first of ``seeds`` seeds per point (default: the scenario's number of seeds). ``force`` makes all runs again.

        With ``until="goodput 2 %"``, each point gets more seeds, at most ``most``, until half of the 95 % confidence interval of
        that quantity is within that share of its mean. Every point has at least 20 seeds, or ``seeds`` if that is more. The number
        of seeds of a point depends only on the records. A :class:`RuntimeWarning` names each point whose interval stays wider.

        Other programs may work in ``out`` while this campaign makes no runs. If they change the records, :meth:`run` refuses to
        continue with the records that this object has read.

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
        """Number of runs. With ``until``, the runs of the seeds so far."""
        return self._native.total

    @property
    def done(self) -> int:
        """Number of finished runs."""
        return self._native.done()

    def run(
        self,
        *,
        jobs: int | None = None,
        executor: Executor | None = None,
        chunk_seconds: float | None = None,
        progress: ProgressArgument = None,
    ) -> Results:
        """Makes the missing runs.

        The runs are made on ``jobs`` threads (default: the number of processors), during which Python's global lock is free. With
        an ``executor``, its workers make the runs. It may be any executor of ``concurrent.futures`` whose workers can import this
        package, or the result of :func:`meshpace.dask.connect`. The executor gets chunks of runs, the longest runs first. A chunk
        has ``chunk_seconds`` of CPU time by the estimate (default: several chunks per worker, of at most 60 s). The records are
        the same, byte for byte, as those of a local run.

        ``progress`` is called with the number of finished runs, the number of all runs and the share of the work that is
        finished; ``True`` shows a bar. An exception in it ends the campaign, as do an exception in a pacing rule and Ctrl-C. The
        records made until then are kept (:meth:`results`).

        Runs that fail are in ``failed`` of the results; they do not end the other runs.
        """
        from ._remote import carry

        if executor is not None and self.scenario.rules:
            raise ValueError(f"executor: the pacing rule {self.scenario.rules[0]!r} is in this process; run it here, with jobs")
        told, closing = _progress(progress, self.scenario.name)
        carrier = None if executor is None else carry(executor)
        try:
            self._native.run(_jobs(jobs), told, carrier, chunk_seconds)
        except Exception as raised:
            # From Python 3.11 on, a note of the exception says in which run a pacing rule raised
            # it.
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
        """The records made so far."""
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
