"""Scenarios from files, texts and dictionaries, and what is said of wrong ones."""

from __future__ import annotations

import array
import copy
import multiprocessing
import pickle
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from pathlib import Path

import meshpace
import pytest
from meshpace._toml import value


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


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (Fraction(1, 2), "0.5"),
        (Fraction(4, 2), "2"),
        (Decimal("0.5"), "0.5"),
        (Decimal("2"), "2"),
        (Decimal("1E+3"), "1000"),
        (Decimal("Infinity"), "inf"),
        (float("nan"), "nan"),
        (range(1, 4), "[1, 2, 3]"),
        ((0.5, True, "a"), '[0.5, true, "a"]'),
        (deque([1, 2]), "[1, 2]"),
        (array.array("d", [0.5, 2.0]), "[0.5, 2.0]"),
        (IntEnum("Hops", {"MANY": 7})(7), "7"),
    ],
)
def test_a_real_number_or_a_sequence_is_a_value(item: object, text: str) -> None:
    assert value(item) == text


def test_numbers_and_sequences_of_numpy_and_pandas_are_values() -> None:
    numpy, pandas = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    for item, text in [
        (numpy.float64(0.5), "0.5"),
        (numpy.float32(0.5), "0.5"),
        (numpy.float16(0.5), "0.5"),
        (numpy.longdouble(0.5), "0.5"),
        (numpy.int64(3), "3"),
        (numpy.uint8(3), "3"),
        (numpy.bool_(True), "true"),
        (numpy.str_("aodv"), '"aodv"'),
        (numpy.array(0.5), "0.5"),
        (numpy.array([1, 2]), "[1, 2]"),
        (numpy.linspace(0.0, 1.0, 3), "[0.0, 0.5, 1.0]"),
        (numpy.array([[0, 1], [2, 3]]), "[[0, 1], [2, 3]]"),
        (numpy.array(["newreno", "tcp-ap"]), '["newreno", "tcp-ap"]'),
        ([numpy.float64(0.5), numpy.int32(2)], "[0.5, 2]"),
        (pandas.Series([1, 2]), "[1, 2]"),
        (pandas.Index(["a", "b"]), '["a", "b"]'),
    ]:
        assert value(item) == text, item
    for wrong in (numpy.complex128(1j), numpy.ma.masked_array([1, 2], [0, 1]), numpy.datetime64("2026-01-01")):
        with pytest.raises(TypeError):
            value(wrong)
    # The whole way, also as keys of a sweep, as settings and as seeds.
    pacing = {"kind": "adaptive", "dispersion_factor": numpy.float64(0.5)}
    scenario = meshpace.Scenario.build(
        {
            "duration": "3 s",
            "flow": numpy.array([{"transport": {"name": "tcp-ap", "pacing": pacing}}]),
            "sweep": {"topology.hops": numpy.arange(1, 3)},
        }
    )
    assert scenario.points == [{"topology.hops": 1}, {"topology.hops": 2}]
    results = scenario.sweep(seed=numpy.int64(3), seeds=numpy.int64(2))
    assert [record["seed"] for record in results] == [3, 4, 3, 4]
    assert meshpace.Scenario.parse("[[flow]]", set={"topology.hops": numpy.int8(2)}).points == [{}]


@pytest.mark.parametrize("item", [1j, {1, 2}, b"ab", None, (part for part in "ab"), {"a": 1}.keys()])
def test_what_is_no_value_is_refused(item: object) -> None:
    with pytest.raises(TypeError):
        value(item)


def test_a_scenario_can_be_pickled_and_copied(tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("from,to,snr_db\n0,1,30\n")
    file = tmp_path / "two.toml"
    file.write_text('duration = "3 s"\n[topology]\nhops = 1\n[radio]\nlinks = "two.csv"\n[[flow]]\n[sweep]\n"flow.transport" = ["newreno", "tcp-ap"]\n')
    scenario = meshpace.Scenario.load(file, set={"warmup": "1 s"})
    expected = list(scenario.sweep(seeds=1).lines())
    pickled = pickle.dumps(scenario)
    # The files that it names go with it.
    (tmp_path / "two.csv").unlink()
    file.unlink()
    for again in (pickle.loads(pickled), copy.copy(scenario), copy.deepcopy(scenario), copy.deepcopy([scenario])[0]):
        assert (again.name, again.text, again.digest, again.points) == (scenario.name, scenario.text, scenario.digest, scenario.points)
        assert list(again.sweep(seeds=1).lines()) == expected
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(_goodputs, scenario).result() == [run["aggregate_goodput_bps"] for run in scenario.sweep(seeds=1)]


def _goodputs(scenario: meshpace.Scenario) -> list[float]:
    return [run["aggregate_goodput_bps"] for run in scenario.sweep(seeds=1)]


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
