"""Pacing rules written in Python."""

from __future__ import annotations

import math
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import meshpace
import pytest

CHAIN = """
duration = "20 s"
warmup = "2 s"
[[flow]]
[sweep]
"topology.hops" = [1, 3, 4, 7]
"routing.protocol" = ["static", "aodv"]
"""


class Ap05:
    """Adaptive pacing as AP05, sections 4.2 to 4.4, has it."""

    def __init__(self, payload: int) -> None:
        self.data, self.ack = 8 * (payload + 40), 8 * 40
        self.rtts: list[float] = []
        self.measured = 0
        self.average: float | None = None

    def on_sample(self, sample: meshpace.Sample) -> float:
        queueing = 0.5 * (sample.rtt / sample.hops - (self.data + self.ack) / sample.rate)
        delay = min(4, sample.hops) * (queueing + self.data / sample.rate)
        self.average = delay if self.average is None else 0.7 * self.average + (1.0 - 0.7) * delay
        if self.measured < 50:
            self.rtts.append(sample.rtt)
        else:
            self.rtts[self.measured % 50] = sample.rtt
        self.measured += 1
        return self.average * (1.0 + 2.0 * self.cov())

    def cov(self) -> float:
        if len(self.rtts) < 2:
            return 0.0
        total = squares = 0.0
        for rtt in self.rtts:
            total += rtt
        mean = total / len(self.rtts)
        for rtt in self.rtts:
            squares += (rtt - mean) * (rtt - mean)
        return math.sqrt(squares / (len(self.rtts) - 1)) / mean


def test_ap05_in_python_is_the_built_in_to_the_last_transmission() -> None:
    ours = meshpace.Scenario.parse(CHAIN).paced(Ap05, name="tcp-ap").sweep(seeds=2)
    built_in = meshpace.Scenario.parse(CHAIN, set={"flow.transport": "tcp-ap"}).sweep(seeds=2)
    assert (ours.failed, len(ours)) == ([], 16)
    for a, b in zip(ours, built_in):
        # The fingerprint covers every transmission and delivery of a run.
        assert a["fingerprint"] == b["fingerprint"], (a["parameters"], a["seed"])
        assert a["flows"][0]["goodput_bps"] == b["flows"][0]["goodput_bps"]


def test_some_flows_under_tcp_and_tpa() -> None:
    heard: set[str] = set()

    class Slow:
        def __init__(self, payload: int) -> None:
            self.payload = payload

        def on_sample(self, sample: meshpace.Sample) -> float:
            heard.add(f"sample of {sample.hops} hops")
            return 0.5

        def on_ack(self, marked: bool, slow_start: bool) -> None:
            heard.add(f"ACK of {self.payload} bytes")

    base = meshpace.Scenario.build({"duration": "20 s", "topology": {"hops": 2}, "flow": [{}, {"transport": "tpa-3"}, {"transport": "newreno"}]})
    record = base.paced(Slow, flows=[0, 1]).run()
    assert [flow["transport"] for flow in record["flows"]] == ["Slow", "Slow", "newreno"]
    assert heard == {"sample of 2 hops", "ACK of 1460 bytes"}
    # Two segments a second.
    for flow in record["flows"][:2]:
        assert 0 < flow["goodput_bps"] <= 2.2 * 1460 * 8
    assert record["flows"][2]["goodput_bps"] > 100_000


def test_what_a_rule_raises_ends_the_campaign_and_is_raised() -> None:
    class Broken:
        def __init__(self, payload: int) -> None:
            pass

        def on_sample(self, sample: meshpace.Sample) -> float:
            if sample.hops == 3:
                raise RuntimeError("three hops are too many")
            return 0.0

    scenario = meshpace.Scenario.parse(CHAIN, set={"routing.protocol": "static"}).paced(Broken)
    campaign = meshpace.Campaign(scenario, seeds=2)
    with pytest.raises(RuntimeError, match="three hops are too many") as raised:
        campaign.run(jobs=1)
    # Its traceback leads into the rule, and its note names the run.
    assert any(place.name == "on_sample" for place in raised.traceback)
    assert all("topology.hops = 3" in note for note in getattr(raised.value, "__notes__", ["topology.hops = 3"]))
    # What was made before stays, and so does what failed.
    results = campaign.results()
    assert not results.complete and "topology.hops = 3" in results.failed[0][0]
    assert "RuntimeError: three hops are too many" in results.failed[0][1] and "test_pacing.py" in results.failed[0][1]
    # Another campaign of the same scenario begins without it.
    with pytest.raises(ValueError, match="4 points"):
        scenario.run()
    fine = meshpace.Scenario.parse(CHAIN, set={"routing.protocol": "static", "topology.hops": 1}).paced(Broken)
    assert fine.sweep(seeds=2).complete


def test_a_rule_that_cannot_be_made_is_raised() -> None:
    class NoArgument:
        def on_sample(self, sample: meshpace.Sample) -> float:
            return 0.0

    with pytest.raises(TypeError):
        meshpace.Scenario.build({"duration": "5 s", "flow": [{}]}).paced(NoArgument).run()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "kind", "why"),
    [
        (-1.0, ValueError, r"Wrong.* returned -1 as its interval"),
        (-1, ValueError, "returned -1 as"),
        (Fraction(-1, 1000), ValueError, "returned -0.001 as"),
        (math.nan, ValueError, "returned NaN as"),
        (math.inf, ValueError, "returned inf as"),
        ("soon", TypeError, ""),
        ([], TypeError, ""),
    ],
)
def test_an_answer_that_is_no_interval_is_raised(answer: object, kind: type[Exception], why: str) -> None:
    class Wrong:
        def __init__(self, payload: int) -> None:
            pass

        def on_sample(self, sample: meshpace.Sample) -> float:
            return answer  # type: ignore[return-value]

    scenario = meshpace.Scenario.build({"duration": "5 s", "flow": [{}]}).paced(Wrong)
    with pytest.raises(kind, match=why):
        scenario.run()
    with pytest.raises(kind, match=why):
        scenario.sweep(seeds=2)


def test_an_interval_may_be_any_real_number() -> None:
    def goodput(answer: object) -> float:
        class Constant:
            def __init__(self, payload: int) -> None:
                pass

            def on_sample(self, sample: meshpace.Sample) -> float:
                return answer  # type: ignore[return-value]

        scenario = meshpace.Scenario.build({"duration": "10 s", "topology": {"hops": 2}, "flow": [{}]})
        return float(scenario.paced(Constant).run()["aggregate_goodput_bps"])

    numpy = pytest.importorskip("numpy")
    expected = goodput(0.125)
    for answer in (Fraction(1, 8), Decimal("0.125"), numpy.float64(0.125), numpy.float32(0.125)):
        assert goodput(answer) == expected
    assert goodput(0) == goodput(numpy.int64(0)) == goodput(False)


def test_what_cannot_be_paced_is_said(tmp_path: Path) -> None:
    udp = meshpace.Scenario.build({"duration": "5 s", "flow": [{"transport": "udp", "traffic": "cbr", "rate": "100 kbit/s"}]})
    with pytest.raises(ValueError, match="flow 0 is UDP"):
        udp.paced(Ap05)
    chain = meshpace.Scenario.build({"duration": "5 s", "flow": [{}]})
    with pytest.raises(ValueError, match="no flow 3"):
        chain.paced(Ap05, flows=[3])
    with ThreadPoolExecutor() as pool, pytest.raises(ValueError, match="'Ap05' is in this process"):
        chain.paced(Ap05).sweep(executor=pool)
    # Another rule is another campaign.
    chain.paced(Ap05).sweep(out=tmp_path / "records")
    with pytest.raises(meshpace.RecordsError):
        chain.sweep(out=tmp_path / "records")


def test_a_scenario_with_a_rule_is_pickled_with_it() -> None:
    scenario = meshpace.Scenario.parse(CHAIN, set={"topology.hops": 3}).paced(Ap05, name="mine", flows=[0])
    again = pickle.loads(pickle.dumps(scenario))
    assert (again.rules, again.digest) == (["mine"], scenario.digest)
    assert list(again.sweep(seeds=1).lines()) == list(scenario.sweep(seeds=1).lines())

    class Local(Ap05):
        pass

    with pytest.raises((pickle.PicklingError, AttributeError), match="Local"):
        pickle.dumps(scenario.paced(Local))


def test_runs_with_a_rule_go_on_side_by_side() -> None:
    seen: set[int] = set()

    class Threaded(Ap05):
        def on_sample(self, sample: meshpace.Sample) -> float:
            seen.add(threading.get_ident())
            return super().on_sample(sample)

    scenario = meshpace.Scenario.parse(CHAIN).paced(Threaded)
    one, four = scenario.sweep(seeds=1, jobs=1), scenario.sweep(seeds=1, jobs=4)
    assert list(one.lines()) == list(four.lines())
    assert threading.get_ident() not in seen
