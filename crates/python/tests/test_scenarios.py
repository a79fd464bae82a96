"""Scenarios from files, texts and dictionaries, and what is said of wrong ones."""

from __future__ import annotations

import pickle
from pathlib import Path

import meshpace
import pytest


def test_a_file_a_text_and_a_dictionary_say_the_same(sweep: Path) -> None:
    loaded = meshpace.Scenario.load(sweep)
    parsed = meshpace.Scenario.parse(sweep.read_text())
    built = meshpace.Scenario.build(
        {
            "title": "Chains",
            "duration": "4 s",
            "warmup": "1 s",
            "flow": [{}],
            "sweep": {"topology.hops": [1, 2, 3, 4], "flow.transport": ["newreno", "tcp-ap"], "seeds": 3},
        }
    )
    assert loaded.name == parsed.name == built.name == "Chains"
    assert loaded.points == parsed.points == built.points
    assert loaded.points[1] == {"topology.hops": 1, "flow.transport": "tcp-ap"}
    assert loaded.seeds == built.seeds == 3
    assert len(loaded.cpu_seconds) == 8


def test_a_tree_of_every_type_becomes_toml() -> None:
    tree = {
        "title": 'quotes " and \\ and \n and ü',
        "topology": {"kind": "nodes", "positions": [["0 m", "0 m"], ["200 m", "0 m"]]},
        "flow": [{"from": 0, "to": 1, "transport": {"name": "newreno", "pacing": {"kind": "adaptive", "alpha": 0.5}}}, {"from": 1, "to": 0}],
    }
    scenario = meshpace.Scenario.build(tree)
    assert scenario.name == tree["title"]
    assert len(scenario.run()["flows"]) == 2


def test_settings_change_keys(sweep: Path) -> None:
    scenario = meshpace.Scenario.load(sweep, set={"topology.hops": 2, "flow.transport": "few"})
    assert scenario.points == [{}]
    record = scenario.run(seed=7)
    assert (record["seed"], record["flows"][0]["hops"], record["flows"][0]["transport"]) == (7, 2, "few")


def test_a_wrong_scenario_is_refused_with_file_line_and_key(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text('[topology]\nhops = 4\nhopps = 5\n[radio]\nrate = "2 kg"\n[[flow]]\n')
    with pytest.raises(meshpace.ScenarioError) as refused:
        meshpace.Scenario.load(file)
    error = refused.value
    assert (error.file, error.line, error.key) == (str(file), 3, "topology.hopps")
    assert [problem.line for problem in error.problems] == [3, 5]
    assert "hopps" in str(error) and "wrong.toml" in str(error)
    assert isinstance(error, ValueError)
    # Exceptions cross processes.
    again = pickle.loads(pickle.dumps(error))
    assert (again.line, str(again)) == (3, str(error))


def test_a_wrong_setting_is_named(sweep: Path) -> None:
    with pytest.raises(meshpace.ScenarioError) as refused:
        meshpace.Scenario.load(sweep, set={"topology.hops": "many"})
    assert refused.value.problems[0].set == 'topology.hops="many"'
    with pytest.raises(TypeError):
        meshpace.Scenario.build({"title": object()})
    with pytest.raises(OSError):
        meshpace.Scenario.load("there/is/no.toml")


def test_a_sweep_is_no_single_run(sweep: Path) -> None:
    with pytest.raises(ValueError, match="8 points"):
        meshpace.Scenario.load(sweep).run()
