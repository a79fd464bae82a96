"""Scenarios: what is simulated."""

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

#: What a key may be set to.
Setting = Any


class PacingRule(Protocol):
    """A pacing rule: what a sender measures in, the time between two segments out.

    A method ``on_ack(marked, slow_start)``, if there is one, is called for every ACK of a TCP and answers as ``on_sample`` does. A
    rule holds no locks, files or threads: a connection may be copied, and its rule with it (``copy.deepcopy``).
    """

    def on_sample(self, sample: _native.Sample) -> float | None:
        """The seconds between two segments from now on, 0 for no pacing; ``None``: as before."""


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
        """One made of another, whose warnings have been given."""
        scenario = cls.__new__(cls)
        scenario._native = native
        return scenario

    @classmethod
    def load(cls, file: str | os.PathLike[str], set: Mapping[str, Setting] | None = None) -> Scenario:
        """Reads a file. ``set`` changes keys of it, as ``--set`` of the command does: ``{"topology.hops": 4}``.

        Raises :class:`meshpace.ScenarioError` with file, line and key of everything that is wrong, and :class:`OSError`.
        """
        path = os.fspath(file)
        with open(path, encoding="utf-8") as opened:
            text = opened.read()
        directory, base = os.path.split(path)
        return cls(_native.Scenario(text, path, directory, os.path.splitext(base)[0], _sets(set)))

    @classmethod
    def parse(cls, text: str, set: Mapping[str, Setting] | None = None, *, directory: str | os.PathLike[str] = "") -> Scenario:
        """Reads a text in TOML. Names of files in it start at ``directory``."""
        return cls(_native.Scenario(text, "<text>", os.fspath(directory), "text", _sets(set)))

    @classmethod
    def build(cls, tree: Mapping[str, Any], *, directory: str | os.PathLike[str] = "") -> Scenario:
        """A scenario from dictionaries and lists: ``{"topology": {"hops": 4}, "flow": [{"transport": "tcp-ap"}]}``.

        Lines in errors are those of :attr:`text`.
        """
        return cls(_native.Scenario(document(tree), "<dict>", os.fspath(directory), "dict", []))

    @classmethod
    def kept(cls, directory: str | os.PathLike[str], point: Mapping[str, Any] | None = None) -> Scenario:
        """One point of a directory of records, from what the directory keeps: the text of its scenario, and the files that this names.

        ``point`` are the values of the point, as its records have them: ``{"topology.hops": 4}``. A pacing rule of Python is added with :meth:`paced`, and
        :meth:`run` makes a run again. Raises :class:`meshpace.RecordsError` if the directory has no such point, or if a file is missing.
        """
        return cls(_native.kept_scenario(os.fspath(directory), json.dumps(dict(point or {}))))

    @property
    def name(self) -> str:
        """Its title, or the name of its file without extension."""
        return self._native.name

    @property
    def text(self) -> str:
        """What it was read from."""
        return self._native.text

    @property
    def digest(self) -> str:
        """SHA-256 of everything that it was read from, and of what its pacing rules are now."""
        return self._identified()[0]

    def _identified(self) -> tuple[str, list[tuple[str, list[int] | None, Identity]]]:
        """The digest, and name, flows and identity of each pacing rule."""
        digest, rules = self._native.digest, []
        for name, rule, flows, id in self._native.paced_by():
            identity = identify(rule, id)
            digest = hashlib.sha256("\n".join([digest, name, repr(flows), identity.digest]).encode()).hexdigest()
            rules.append((name, flows, identity))
        return digest, rules

    @property
    def seeds(self) -> int:
        """Seeds per point, unless a campaign has others."""
        return self._native.seeds

    @property
    def points(self) -> list[dict[str, Any]]:
        """The values of the sweep, point by point; one empty point without a sweep."""
        return cast("list[dict[str, Any]]", json.loads(self._native.points()))

    @property
    def cpu_seconds(self) -> list[float]:
        """About how long one run of each point takes."""
        return [seconds for seconds, _ in self._native.estimates()]

    @property
    def rules(self) -> list[str]:
        """The pacing rules of Python in it (:meth:`paced`)."""
        return self._native.rules

    def paced(
        self,
        rule: Callable[[int], PacingRule],
        *,
        name: str | None = None,
        flows: Sequence[int] | None = None,
        id: str | None = None,
    ) -> Scenario:
        """The same scenario with the pacing of its flows by a rule of your own.

        ``rule`` is called with the bytes of payload per segment and makes the rule of one sender: a class, mostly. It stands in the
        place of whatever pacing the flow's TCP or TPA has; window, ACKs and recovery stay. ``flows`` are the numbers of the flows
        that get it, all unless told. ``name`` (that of ``rule`` unless told) is what records call the transport.

        What a rule raises ends the campaign, and its caller gets it; a negative interval, or one that is not finite, is a
        :class:`ValueError` there. Records that were made before stay (:meth:`meshpace.Campaign.results`). Runs are made in this
        process only.

        Records on the disk (``out``) are those of one rule: of its source, of the variables that it captures, of the globals and
        functions that it uses, and of the attributes of its class, as they are when the campaign begins. A directory made by a
        rule that has changed since is refused, with what changed. Where a part has no value that can be compared, such as an open
        file, ``id`` has to name the rule; choose another one whenever you change what it does.

        Raises :class:`ValueError` if a flow is neither TCP nor TPA, or is not there.
        """
        name = name or str(getattr(rule, "__name__", type(rule).__name__))
        numbers = None if flows is None else [index(number) for number in flows]
        return Scenario._of(self._native.paced(name, rule, numbers, id))

    def run(self, seed: int = 1) -> dict[str, Any]:
        """Makes one run and gives its record, as ``meshpace run --format json`` writes it.

        Raises :class:`ValueError` for a scenario with a sweep of several points: that is a campaign.
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

        ``seed=3`` alone makes one run of each point, with that seed; ``seed=3, seeds=5`` those with the seeds 3 to 7. ``until="goodput 2 %"`` makes as many as that
        precision needs.
        """
        from ._campaign import Campaign

        if seed is not None and seeds is None:
            seeds = 1
        campaign = Campaign(self, seed=1 if seed is None else seed, seeds=seeds, out=out, force=force, until=until, most=most)
        return campaign.run(jobs=jobs, executor=executor, chunk_seconds=chunk_seconds, progress=progress)

    def __copy__(self) -> Scenario:
        # A scenario does not change.
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Scenario:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """With the files that it names; its pacing rules have to be pickled themselves, as classes of a module are."""
        return _restored, self._native.state()

    def __repr__(self) -> str:
        return f"<meshpace.Scenario {self.name!r}, {len(self.points)} points>"


def _restored(job: str, rules: list[tuple[str, Callable[[int], PacingRule], list[int] | None, str | None]]) -> Scenario:
    native = _native.restored_scenario(job)
    for name, rule, flows, id in rules:
        native = native.paced(name, rule, flows, id)
    return Scenario._of(native)
