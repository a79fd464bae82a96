"""Selecting from recorded sweeps."""

from __future__ import annotations

from pathlib import Path

import meshpace
import pytest


def test_points_are_selected_and_compared(sweep: Path, tmp_path: Path) -> None:
    meshpace.Scenario.load(sweep).sweep(out=tmp_path / "kept")
    results = meshpace.open_records(tmp_path / "kept")
    assert len(results) == 24
    chosen = results.where({"topology.hops": [2, 4], "flow.transport": "tcp-ap"})
    assert {(run["point"]["topology.hops"], run["point"]["flow.transport"]) for run in chosen} == {(2, "tcp-ap"), (4, "tcp-ap")}
    assert (len(chosen), chosen.total, chosen.complete) == (6, 6, True)
    # The same records, to the last byte, and every other use of results.
    assert list(chosen.lines()) == [line for line, run in zip(results.lines(), results) if run["point"] in ({"topology.hops": 2, "flow.transport": "tcp-ap"}, {"topology.hops": 4, "flow.transport": "tcp-ap"})]
    assert {row["topology.hops"] for row in chosen.runs} == {2, 4}
    # Sides of one sweep, each with all of its hops: the difference is that of the means.
    newreno, paced = (results.where({"flow.transport": name}) for name in ("newreno", "tcp-ap"))
    goodput = meshpace.compare(newreno, paced)[0]
    mean = [sum(run["aggregate_goodput_bps"] for run in side) / len(side) for side in (newreno, paced)]
    assert goodput.seeds == 3 and goodput.difference == pytest.approx(mean[1] - mean[0])


def test_numbers_of_numpy_select(sweep: Path) -> None:
    numpy = pytest.importorskip("numpy")
    results = meshpace.Scenario.load(sweep).sweep(seeds=1)
    assert len(results.where({"topology.hops": numpy.arange(1, 3)})) == len(results.where({"topology.hops": [1, 2.0]})) == 4


def test_what_is_not_there_is_said(sweep: Path) -> None:
    results = meshpace.Scenario.load(sweep).sweep(seeds=1)
    for wrong, told in [({"topology.hops": 9}, "there are 1, 2, 3, 4"), ({"hops": 1}, "they sweep")]:
        with pytest.raises(meshpace.RecordsError, match=told):
            results.where(wrong)
