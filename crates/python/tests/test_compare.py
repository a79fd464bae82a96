"""Comparisons, and whether they hold under other models."""

from __future__ import annotations

from typing import Any

import meshpace
import pytest

#: One hop without loss: the rate of the radio decides, whatever the model.
HOP: dict[str, Any] = {"duration": "5 s", "warmup": "2 s", "topology": {"hops": 1}, "flow": [{"transport": "newreno"}]}


def hop(rate: str) -> meshpace.Scenario:
    return meshpace.Scenario.build({**HOP, "radio": {"rate": rate}})


def test_half_the_rate_loses_under_every_model() -> None:
    told: list[tuple[int, int, float]] = []
    lines = meshpace.compare(hop("1 Mbit/s"), hop("2 Mbit/s"), robust=True, progress=lambda *so_far: told.append(so_far))
    goodput = next(line for line in lines if line.metric == "aggregate_goodput_bps")
    assert goodput.better == "b" and goodput.robust is not None
    found = goodput.robust
    assert found.holds == found.of == len(found.models) >= 8
    assert not found.flips_with and not found.starves_with and not found.cannot_be_told_with
    assert "AODV" in found.not_applicable["routing.local_repair = off"]
    assert found.words.startswith("as written b has the higher goodput by ")
    # Three seeds of two sides for each model; the share of the work only grows, up to all of it.
    assert told[-1][:2] == (6 * found.of, 6 * found.of) and told[-1][2] == pytest.approx(1.0)
    shares = [share for _, _, share in told]
    assert shares == sorted(shares)


def test_the_same_twice_is_a_tie_under_every_model_and_a_rule_of_python_stays() -> None:
    class Slow:
        def __init__(self, payload: int) -> None:
            pass

        def on_sample(self, sample: meshpace.Sample) -> float:
            return 0.2

    plain = hop("2 Mbit/s")
    paced = plain.paced(Slow)
    tie = meshpace.compare(paced, paced, robust=True, seeds=3)[0]
    assert tie.robust is not None and tie.robust.holds == tie.robust.of and tie.difference == 0
    # In 3 s there are 16 segments 0.2 s apart, under every model: without the rule there would be hundreds.
    slower = meshpace.compare(plain, paced, robust=True, seeds=3)[0]
    assert slower.robust is not None and slower.better == "a" and slower.robust.holds == slower.robust.of
    for model in slower.robust.models:
        assert model["b"] <= 16 * 1460 * 8 / 3 + 1, model["model"]


def test_scenarios_are_run_and_records_cannot_be_asked() -> None:
    by_scenario = meshpace.compare(hop("1 Mbit/s"), hop("2 Mbit/s"), seeds=3)
    results = [hop(rate).sweep(seeds=3) for rate in ("1 Mbit/s", "2 Mbit/s")]
    assert by_scenario == meshpace.compare(*results)
    assert all(line.robust is None for line in by_scenario)
    with pytest.raises(ValueError, match="compare the scenario files instead"):
        meshpace.compare(*results, robust=True)


def test_sweep_of_one_seed_makes_that_seed() -> None:
    scenario = meshpace.Scenario.build({**HOP, "sweep": {"topology.hops": [1, 2], "seeds": 4}})
    seeds = lambda results: [record["seed"] for record in results]  # noqa: E731
    assert seeds(scenario.sweep(seed=3)) == [3, 3]
    assert seeds(scenario.sweep(seed=3, seeds=2)) == [3, 4, 3, 4]
    assert seeds(scenario.sweep()) == [1, 2, 3, 4, 1, 2, 3, 4]
