"""Pacing rules written in Python."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor
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


def test_a_rule_that_raises_ends_its_run_with_a_traceback() -> None:
    class Broken:
        def __init__(self, payload: int) -> None:
            pass

        def on_sample(self, sample: meshpace.Sample) -> float:
            if sample.hops == 3:
                raise RuntimeError("three hops are too many")
            return 0.0

    with pytest.warns(RuntimeWarning, match=r"topology.hops = 3.* and 1 more of 8 runs failed"):
        results = meshpace.Scenario.parse(CHAIN, set={"routing.protocol": "static"}).paced(Broken).sweep(seeds=2)
    assert len(results) == 6
    assert len(results.failed) == 2
    for run, why in results.failed:
        assert "topology.hops = 3" in run
        assert "RuntimeError: three hops are too many" in why and "on_sample" in why and "test_pacing.py" in why


@pytest.mark.parametrize(("answer", "why"), [(math.nan, "NaN"), ("soon", "TypeError"), ([], "TypeError")])
def test_an_answer_that_is_no_interval_ends_the_run(answer: object, why: str) -> None:
    class Wrong:
        def __init__(self, payload: int) -> None:
            pass

        def on_sample(self, sample: meshpace.Sample) -> float:
            return answer  # type: ignore[return-value]

    scenario = meshpace.Scenario.build({"duration": "5 s", "flow": [{}]}).paced(Wrong)
    with pytest.raises(meshpace.RunError, match=why):
        scenario.run()


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
