"""Scenarios."""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from operator import index
from typing import TYPE_CHECKING, Any, Callable, Mapping, Protocol, Sequence, cast

from . import _native
from ._errors import RunError
from ._identity import Identity, identify
from ._toml import document

if TYPE_CHECKING:
    from ._campaign import Executor, ProgressArgument
    from ._results import Results

#: Value of a key.
Setting = Any


class PacingRule(Protocol):
    """A pacing rule: it maps the measurements of a sender to the time between two segments.

    If the rule has a method ``on_ack(marked, slow_start)``, it is called for every ACK of a TCP and returns the same as
    ``on_sample``. A rule must not hold locks, files or threads, because a connection may be copied together with its rule
    (``copy.deepcopy``).
    """

    def on_sample(self, sample: _native.Sample) -> float | None:
        """Returns the time between two segments from now on, seconds; 0 for no pacing, ``None`` for no change."""


def _sets(settings: Mapping[str, Setting] | None) -> list[str]:
    from ._toml import value

    return [f"{key}={value(setting)}" for key, setting in (settings or {}).items()]


class Scenario:
    """A scenario that can be run. Make one with :meth:`load`, :meth:`parse` or :meth:`build`."""

    def __init__(self, native: _native.Scenario) -> None:
        self._native = native
        for warning in native.warnings:
            warnings.warn(f"{native.file}: {warning}", stacklevel=3)

    @classmethod
    def _of(cls, native: _native.Scenario) -> Scenario:
        """A scenario derived from another one whose warnings have been issued already."""
        scenario = cls.__new__(cls)
        scenario._native = native
        return scenario

    @classmethod
    def load(cls, file: str | os.PathLike[str], set: Mapping[str, Setting] | None = None) -> Scenario:
        """Reads a file. ``set`` changes keys of it, as ``--set`` of the command does: ``{"topology.hops": 4}``.

        Raises :class:`meshpace.ScenarioError` with file, line and key of every error, and :class:`OSError`.
        """
        path = os.fspath(file)
        with open(path, encoding="utf-8") as opened:
            text = opened.read()
        directory, base = os.path.split(path)
        return cls(_native.Scenario(text, path, directory, os.path.splitext(base)[0], _sets(set)))

    @classmethod
    def parse(cls, text: str, set: Mapping[str, Setting] | None = None, *, directory: str | os.PathLike[str] = "") -> Scenario:
        """Reads a text in TOML. Names of files in it are relative to ``directory``."""
        return cls(_native.Scenario(text, "<text>", os.fspath(directory), "text", _sets(set)))

    @classmethod
    def build(cls, tree: Mapping[str, Any], *, directory: str | os.PathLike[str] = "") -> Scenario:
        """A scenario from dictionaries and lists: ``{"topology": {"hops": 4}, "flow": [{"transport": "tcp-ap"}]}``.

        Line numbers in errors refer to :attr:`text`.
        """
        return cls(_native.Scenario(document(tree), "<dict>", os.fspath(directory), "dict", []))

    @classmethod
    def kept(cls, directory: str | os.PathLike[str], point: Mapping[str, Any] | None = None) -> Scenario:
        """One point of a directory of records, read from the scenario text and the files that the directory contains.

        ``point`` contains the values of the point as in its records: ``{"topology.hops": 4}``. Use :meth:`paced` to add a pacing rule
        of Python, and :meth:`run` to repeat a run. Raises :class:`meshpace.RecordsError` if the directory has no such point, or if a
        file is missing.
        """
        return cls(_native.kept_scenario(os.fspath(directory), json.dumps(dict(point or {}))))

    @property
    def name(self) -> str:
        """Title of the scenario, or the name of its file without extension."""
        return self._native.name

    @property
    def text(self) -> str:
        """Text of the scenario."""
        return self._native.text

    @property
    def digest(self) -> str:
        """SHA-256 of everything that the scenario was read from, and of the current state of its pacing rules."""
        return self._identified()[0]

    def _identified(self) -> tuple[str, list[tuple[str, list[int] | None, Identity]]]:
        """Digest of the scenario, and name, flows and identity of each pacing rule."""
        digest, rules = self._native.digest, []
        for name, rule, flows, id in self._native.paced_by():
            identity = identify(rule, id)
            digest = hashlib.sha256("\n".join([digest, name, repr(flows), identity.digest]).encode()).hexdigest()
            rules.append((name, flows, identity))
        return digest, rules

    @property
    def seeds(self) -> int:
        """Default number of seeds per point."""
        return self._native.seeds

    @property
    def points(self) -> list[dict[str, Any]]:
        """Values of the sweep at each point. A scenario without a sweep has one empty point."""
        return cast("list[dict[str, Any]]", json.loads(self._native.points()))

    @property
    def cpu_seconds(self) -> list[float]:
        """Estimated CPU time of one run of each point, seconds."""
        return [seconds for seconds, _ in self._native.estimates()]

    @property
    def rules(self) -> list[str]:
        """Names of the scenario's Python pacing rules (:meth:`paced`)."""
        return self._native.rules

    def paced(
        self,
        rule: Callable[[int], PacingRule],
        *,
        name: str | None = None,
        flows: Sequence[int] | None = None,
        id: str | None = None,
    ) -> Scenario:
        """Returns a copy of the scenario whose flows are paced by your own rule.

        ``rule`` is called with the payload per segment in bytes and returns the rule of one sender; usually ``rule`` is a class. The
        rule replaces the pacing of the flow's TCP or TPA; window, ACKs and recovery do not change. ``flows`` are the numbers of the
        flows that use the rule (default: all flows). Records use ``name`` as the name of the transport (default: the name of
        ``rule``).

        An exception in a rule ends the campaign and is raised to its caller. A negative or infinite interval is a
        :class:`ValueError`. Records made before are kept (:meth:`meshpace.Campaign.results`). Runs are made in this process only.

        A directory of records (``out``) belongs to one rule. The rule is identified by its source, the variables that it captures,
        the globals and functions that it uses, and the attributes of its class, as they are when the campaign begins. If the rule
        has changed, the directory is refused with a message that names the change. If a part cannot be compared, such as an open
        file, ``id`` must identify the rule. Choose another ``id`` whenever you change what the rule does.

        Raises :class:`ValueError` if a flow does not exist, or is neither TCP nor TPA.
        """
        name = name or str(getattr(rule, "__name__", type(rule).__name__))
        numbers = None if flows is None else [index(number) for number in flows]
        return Scenario._of(self._native.paced(name, rule, numbers, id))

    def run(self, seed: int = 1) -> dict[str, Any]:
        """Makes one run and returns its record, as ``meshpace run --format json`` writes it.

        Raises :class:`ValueError` for a scenario with several points, for which :meth:`sweep` is meant.
        """
        if len(self.points) != 1:
            raise ValueError(f"the scenario has {len(self.points)} points: sweep() runs them all")
        results = self.sweep(seed=seed, seeds=1, jobs=1)
        if results.failed:
            raise RunError("{} failed: {}".format(*results.failed[0]))
        return next(iter(results))

    def sweep(
        self,
        *,
        seed: int | None = None,
        seeds: int | None = None,
        out: str | os.PathLike[str] | None = None,
        force: bool = False,
        until: str | None = None,
        most: int = 400,
        jobs: int | None = None,
        executor: Executor | None = None,
        chunk_seconds: float | None = None,
        progress: ProgressArgument = None,
    ) -> Results:
        """Makes every run of every point: :class:`meshpace.Campaign` in one call.

        ``seed=3`` alone makes one run of each point, with that seed. ``seed=3, seeds=5`` makes the runs with the seeds 3 to 7.
        ``until="goodput 2 %"`` makes as many runs as that precision requires.
        """
        from ._campaign import Campaign

        if seed is not None and seeds is None:
            seeds = 1
        campaign = Campaign(self, seed=1 if seed is None else seed, seeds=seeds, out=out, force=force, until=until, most=most)
        return campaign.run(jobs=jobs, executor=executor, chunk_seconds=chunk_seconds, progress=progress)

    def __copy__(self) -> Scenario:
        # Scenarios are immutable.
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Scenario:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the scenario with the files that it names. Its pacing rules must be picklable, as classes of a module are."""
        return _restored, self._native.state()

    def __repr__(self) -> str:
        return f"<meshpace.Scenario {self.name!r}, {len(self.points)} points>"


def _restored(job: str, rules: list[tuple[str, Callable[[int], PacingRule], list[int] | None, str | None]]) -> Scenario:
    native = _native.restored_scenario(job)
    for name, rule, flows, id in rules:
        native = native.paced(name, rule, flows, id)
    return Scenario._of(native)
