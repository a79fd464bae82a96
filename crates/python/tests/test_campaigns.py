"""Campaigns: the records of the command, resumed, interrupted, on executors."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable

import meshpace
import pytest
from conftest import wait_for

LONG = """
duration = "20000 s"
[[flow]]
[sweep]
"topology.hops" = [4, 5, 6, 7]
seeds = 50
"""


def test_200_runs_are_those_of_the_command(sweep: Path, command: str) -> None:
    arguments = [command, "run", str(sweep), "--seed", "5", "--seeds", "25", "--format", "json"]
    lines = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout.splitlines()
    results = meshpace.Scenario.load(sweep).sweep(seed=5, seeds=25)
    assert len(lines) == len(results) == 200 and results.complete
    assert list(results.lines()) == lines


def test_a_directory_is_that_of_the_command(sweep: Path, command: str, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    subprocess.run([command, "run", str(sweep), "--out", str(theirs)], check=True, capture_output=True)
    results = meshpace.Scenario.load(sweep).sweep(out=ours)
    assert (ours / "records.jsonl").read_bytes() == (theirs / "records.jsonl").read_bytes()
    assert list(results.lines()) == list(meshpace.open_records(theirs).lines())
    # The command takes the directory over and finds nothing to do.
    again = subprocess.run([command, "run", str(sweep), "--out", str(ours), "--format", "json"], check=True, capture_output=True, text=True)
    assert again.stdout.splitlines() == list(results.lines())


@pytest.mark.parametrize("on_disk", [False, True])
def test_an_exception_of_progress_ends_it_and_the_rest_comes_later(sweep: Path, tmp_path: Path, on_disk: bool) -> None:
    class Enough(Exception):
        pass

    def stop(done: int, total: int, share: float) -> None:
        assert total == 24 and 0.0 <= share <= 1.0
        raise Enough

    scenario = meshpace.Scenario.load(sweep)
    out = tmp_path / "out" if on_disk else None
    campaign = meshpace.Campaign(scenario, out=out)
    with pytest.raises(Enough):
        campaign.run(jobs=1, progress=stop)
    kept = list(campaign.results().lines())
    assert campaign.done == len(kept) < 24 and not campaign.results().complete
    seen: list[tuple[int, float]] = []
    results = campaign.run(progress=lambda done, total, share: seen.append((done, share)))
    assert results.complete and seen[-1] == (24, pytest.approx(1.0))
    assert list(results.lines()) == list(scenario.sweep().lines())


def test_a_directory_is_free_between_runs_and_a_campaign_goes_on_only_with_what_it_left(sweep: Path, tmp_path: Path) -> None:
    scenario, out = meshpace.Scenario.load(sweep), tmp_path / "out"

    def stop(done: int, total: int, share: float) -> None:
        # While runs are made the directory is locked.
        with pytest.raises(meshpace.RecordsError, match="is writing to"):
            meshpace.Campaign(scenario, out=out)
        raise KeyboardInterrupt

    # A notebook keeps what raised, and with it the campaign.
    interrupted = meshpace.Campaign(scenario, out=out)
    with pytest.raises(KeyboardInterrupt):
        interrupted.run(jobs=1, progress=stop)
    kept = list(interrupted.results().lines())
    assert meshpace.Campaign(scenario, out=out).done == len(kept) > 0
    assert scenario.sweep(out=out).complete
    with pytest.raises(meshpace.RecordsError, match="open the campaign again"):
        interrupted.run()
    assert list(interrupted.results().lines()) == kept


def test_control_c_keeps_what_is_done(sweep: Path, tmp_path: Path) -> None:
    file, out, done = tmp_path / "long.toml", tmp_path / "out", tmp_path / "done"
    file.write_text(LONG.replace("20000 s", "20 s").replace("seeds = 50", "seeds = 10000"))
    program = f"""
import pathlib, meshpace
campaign = meshpace.Campaign(meshpace.Scenario.load({str(file)!r}), out={str(out)!r})
try:
    campaign.run(jobs=1, progress=lambda made, total, share: made > 2 and pathlib.Path({str(done)!r}).touch())
except KeyboardInterrupt:
    print(campaign.done, len(list(campaign.results())))
"""
    # Whatever runs these tests in the background has them ignore SIGINT, and a program inherits that.
    heed = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, preexec_fn=heed)
    wait_for(done.exists, "three runs")
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=120)
    made, kept = map(int, told.split())
    assert 2 < made == kept < 40000
    # Every one of them is on the disk, after the head of the unfinished file.
    lines = (out / "unfinished.jsonl").read_text().splitlines()
    assert len(lines) == 1 + made and all("frames" in json.loads(line) for line in lines[1:])


def test_other_threads_go_on_meanwhile() -> None:
    scenario = meshpace.Scenario.parse('duration = "2000 s"\ntopology.hops = 4\n[[flow]]\n')
    counts: list[int] = []
    running, counter = threading.Event(), [0]

    def count() -> None:
        while not running.is_set():
            counter[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        campaign = meshpace.Campaign(scenario, seeds=1)
        # Told once before it ends and once after, in the thread of the campaign: what is counted in between, the other did.
        before = counter[0]
        campaign.run(jobs=1, progress=lambda done, total, share: counts.append(counter[0]))
    finally:
        running.set()
        thread.join()
    assert counts[-1] - before > 10_000, f"{counts[-1] - before} counts in a run: the lock was held"


def test_a_campaign_grows_in_its_directory(sweep: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    text = sweep.read_text()
    meshpace.Scenario.load(sweep).sweep(seeds=2, out=out)
    # Another title, a point more, and other seeds: the results are those of the campaign, and the directory has all.
    sweep.write_text(text.replace('"Chains"', '"More chains"  # and a comment').replace("[1, 2, 3, 4]", "[5, 1]"))
    scenario = meshpace.Scenario.load(sweep)
    made: list[int] = []
    results = scenario.sweep(seed=2, seeds=2, out=out, progress=lambda done, total, share: made.append(done))
    assert list(results.lines()) == list(scenario.sweep(seed=2, seeds=2).lines())
    assert len(results) == 8 and min(made) >= 2, "seed 2 of one hop was there for both transports"
    assert len(meshpace.open_records(out)) == 16 + 2 + 4


def test_an_unfinished_campaign_can_be_read(slow: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    campaign = meshpace.Campaign(meshpace.Scenario.load(slow), out=out)

    class Enough(Exception):
        pass

    def stop(done: int, total: int, share: float) -> None:
        if done >= 1:
            raise Enough

    with pytest.raises(Enough):
        campaign.run(jobs=1, progress=stop)
    with pytest.warns(RuntimeWarning, match="incomplete"):
        results = meshpace.open_records(out)
    assert len(results) == campaign.done < 24 == results.total and not results.complete
    assert sorted(results.lines()) == sorted(campaign.results().lines())


def test_another_campaign_in_the_directory_is_refused(sweep: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = meshpace.Scenario.load(sweep, set={"duration": "3 s"}).sweep(out=out)
    with pytest.raises(meshpace.RecordsError, match="duration: 3 s → 4 s"):
        meshpace.Scenario.load(sweep).sweep(out=out)
    assert list(meshpace.open_records(out).lines()) == list(first.lines())
    with pytest.raises(meshpace.RecordsError, match="manifest"):
        meshpace.open_records(tmp_path)
    assert len(meshpace.Scenario.load(sweep).sweep(out=out, force=True)) == 24


@pytest.mark.parametrize("make", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_an_executor_gives_the_same_bytes(sweep: Path, tmp_path: Path, make: Callable[[int], Executor]) -> None:
    scenario = meshpace.Scenario.load(sweep)
    with make(2) as executor:
        results = scenario.sweep(out=tmp_path / "out", executor=executor, chunk_seconds=0.01)
    assert list(results.lines()) == list(scenario.sweep().lines())


def test_files_that_a_scenario_names_go_along(tmp_path: Path) -> None:
    (tmp_path / "map.csv").write_text("id,x_m,y_m\n0,0,0\n1,200,0\n2,400,0\n")
    file = tmp_path / "map.toml"
    file.write_text('duration = "4 s"\ntopology = { kind = "nodes", file = "map.csv" }\n[[flow]]\nfrom = 0\nto = 2\n')
    scenario = meshpace.Scenario.load(file)
    here = list(scenario.sweep(seeds=2).lines())
    (tmp_path / "map.csv").unlink()
    with ProcessPoolExecutor(1) as executor:
        assert list(scenario.sweep(seeds=2, executor=executor).lines()) == here


def test_a_pool_whose_process_is_killed_leaves_a_campaign_that_goes_on(slow: Path, tmp_path: Path) -> None:
    scenario = meshpace.Scenario.load(slow)
    campaign = meshpace.Campaign(scenario, out=tmp_path / "out")
    with ProcessPoolExecutor(1) as executor, pytest.raises(meshpace.CarrierError, match="kept"):
        worker = [executor.submit(os.getpid).result()]
        campaign.run(executor=executor, chunk_seconds=0.001, progress=lambda *_: worker and os.kill(worker.pop(), signal.SIGKILL))
    assert campaign.done < 24
    with ProcessPoolExecutor(1) as executor:
        assert campaign.run(executor=executor).complete
    assert list(campaign.results().lines()) == list(scenario.sweep().lines())


class Lossy(ThreadPoolExecutor):
    """Cancels the first `times` futures, as an executor does whose worker is gone."""

    def __init__(self, times: int) -> None:
        super().__init__(1)
        self.times = times

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self.times > 0:
            self.times -= 1
            lost: Future[Any] = Future()
            lost.cancel()
            lost.set_running_or_notify_cancel()
            return lost
        return super().submit(fn, *args, **kwargs)


def test_a_lost_chunk_is_made_once_more_and_not_twice(sweep: Path) -> None:
    scenario = meshpace.Scenario.load(sweep)
    with Lossy(1) as executor:
        assert scenario.sweep(executor=executor).complete
    with Lossy(2) as executor, pytest.raises(meshpace.CarrierError, match="twice"):
        scenario.sweep(executor=executor)


def test_a_worker_of_another_version_is_refused_by_name(sweep: Path) -> None:
    class Elsewhere(ThreadPoolExecutor):
        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            job = json.loads(args[0])
            job["model"] += 1
            return super().submit(fn, json.dumps(job), *args[1:], **kwargs)

    with Elsewhere(1) as executor, pytest.raises(meshpace.WorkerError) as refused:
        meshpace.Scenario.load(sweep).sweep(executor=executor)
    assert f"process {os.getpid()}" in str(refused.value)
    assert f"revision {meshpace.MODEL_REVISION + 1}" in str(refused.value)


def test_two_variants_are_compared(sweep: Path) -> None:
    sides = [meshpace.Scenario.load(sweep, set={"flow.transport": name}).sweep() for name in ("newreno", "tcp-ap")]
    differences = {difference.metric: difference for difference in meshpace.compare(*sides)}
    goodput = differences["aggregate_goodput_bps"]
    means = [sum(record["aggregate_goodput_bps"] for record in side) / len(side) for side in sides]
    assert (goodput.a, goodput.b) == (pytest.approx(means[0]), pytest.approx(means[1]))
    assert goodput.difference == pytest.approx(means[1] - means[0])
    assert goodput.interval is not None and goodput.interval[0] <= goodput.difference <= goodput.interval[1]
    assert goodput.words


def test_who_starved_is_told_and_not_better() -> None:
    """Node 2 does not sense node 0, whose frames collide with every one of its own at node 3."""

    def results(to: int) -> meshpace.Results:
        positions = [["600 m", "0 m"], ["800 m", "0 m"], ["0 m", "0 m"], ["240 m", "0 m"], ["-200 m", "0 m"]]
        topology = {"kind": "nodes", "positions": positions, "allow_partition": True}
        flows = [{"from": 0, "to": 1}, {"from": 2, "to": to}]
        scenario = meshpace.Scenario.build({"duration": "20 s", "warmup": "5 s", "topology": topology, "flow": flows})
        return meshpace.Campaign(scenario, seeds=3).run()

    dead, alive = results(3), results(4)
    assert dead.starved[0].startswith("STARVED: a flow was starved in every one of 3 runs")
    assert dead.starved[1] == "flow 1 (node 2 to node 3) delivered nothing in 3 of 3 runs."
    assert "a flow starved in 3 of them" in repr(dead)
    assert all(flow["longest_gap_s"] == 15.0 for record in dead for flow in record["flows"][1:])
    differences = {line.metric: line for line in meshpace.compare(alive, dead)}
    assert differences["delay_p95_s"].b is None and differences["delay_p95_s"].starved[1] == 3
    assert all(line.better != "b" for line in differences.values())


def test_a_precision_decides_how_many_seeds_a_point_gets(tmp_path: Path) -> None:
    scenario = meshpace.Scenario.build({"duration": "4 s", "warmup": "1.1 s", "flow": [{}], "sweep": {"topology.hops": [1, 4]}})
    results = scenario.sweep(until="goodput 6 %", most=60)
    seeds = [sum(record["point"]["topology.hops"] == hops for record in results) for hops in (1, 4)]
    assert seeds[0] == 20 < seeds[1] < 60 and results.complete
    # The same with other threads, in a directory that has some of the runs and one beyond.
    scenario.sweep(seeds=3, out=tmp_path)
    campaign = meshpace.Campaign(scenario, until="goodput 6 %", most=60, out=tmp_path)
    assert list(campaign.run(jobs=2).lines()) == list(results.lines())
    assert campaign.done == campaign.total == sum(seeds)
    with pytest.warns(RuntimeWarning, match="0.5 % was not reached at topology.hops = 4: after 22 seeds"):
        scenario.sweep(until="goodput 0.5 %", most=22)
    with pytest.raises(ValueError, match="there is no quantity"):
        scenario.sweep(until="speed 2 %")


def test_a_campaign_of_several_scenarios_is_a_scenario(tmp_path: Path) -> None:
    (tmp_path / "chain.toml").write_text('duration = "2 s"\n[[flow]]\n[sweep]\n"topology.hops" = [1, 2]\n')
    (tmp_path / "maps").mkdir()
    (tmp_path / "maps/town.toml").write_text('duration = "2 s"\ntopology = { kind = "nodes", file = "town.csv" }\n[[flow]]\nfrom = 0\nto = 1\n')
    (tmp_path / "maps/town.csv").write_text("x_m,y_m\n0,0\n150,0\n")
    file = tmp_path / "both.toml"
    file.write_text('title = "Both"\n[plot]\nlabels = { chain = "A chain" }\n[[part]]\nfile = "chain.toml"\n[[part]]\nfile = "maps/town.toml"\n')
    # Two workers, and so without the directory of the file.
    results = meshpace.Scenario.load(file).sweep(seeds=2, out=tmp_path / "out", jobs=2)
    assert [(record["point"], record["seed"]) for record in results] == [
        ({"part": part, **hops}, seed)
        for part, hops in (("chain", {"topology.hops": 1}), ("chain", {"topology.hops": 2}), ("town", {}))
        for seed in (1, 2)
    ]
    assert len(results.where({"part": "town"})) == 2
    again = meshpace.open_records(tmp_path / "out")
    assert [dict(record) for record in again] == [dict(record) for record in results]
    # The plots are those of the campaign.
    chain = again.where({"part": "chain"}).table("goodput", tmp_path / "goodput.tex")
    assert "A chain" in chain and "topology.hops" in chain, chain
    again.report(tmp_path / "page.html")
    assert "A chain" in (tmp_path / "page-goodput-1.svg").read_text()
