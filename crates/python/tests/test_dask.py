"""Campaigns on a real cluster of Dask: a scheduler and workers, each a process, started by Dask's own command line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import meshpace
import pytest
from conftest import Cluster, slow_case, wait_for

pytest.importorskip("distributed")


def test_workers_are_killed_and_the_scheduler_restarted_and_the_bytes_are_those_of_a_local_run(
    cluster: Cluster, slow: Path, tmp_path: Path
) -> None:
    from meshpace import dask

    scenario, out = meshpace.Scenario.load(slow), tmp_path / "out"
    killed: list[int] = []

    def trouble(done: int, total: int, share: float) -> None:
        if done > 0 and not killed:
            cluster.workers[0].kill()
            killed.append(done)
        elif done >= 4 and cluster.scheduler and len(killed) < 2:
            cluster.scheduler.kill()
            killed.append(done)

    campaign = meshpace.Campaign(scenario, out=out)
    workers = dask.connect(cluster.start(workers=3))
    with pytest.raises(meshpace.CarrierError, match="went away.*kept"):
        campaign.run(executor=workers, chunk_seconds=0.001, progress=trouble)
    assert len(killed) == 2 and 4 <= campaign.done < 24
    cluster.stop()
    # The same campaign from the start, as another program would go on with it.
    campaign = meshpace.Campaign(scenario, out=out)
    assert campaign.done >= 4
    results = campaign.run(executor=dask.connect(cluster.start(workers=3)))
    assert results.complete
    scenario.sweep(out=tmp_path / "local")
    assert (out / "records.jsonl").read_bytes() == (tmp_path / "local" / "records.jsonl").read_bytes()


def test_the_command_on_dask_gives_the_records_and_verdicts_of_a_local_one(
    cluster: Cluster, sweep: Path, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MESHPACE_PYTHON", sys.executable)
    address = cluster.start(workers=2)

    def run(*arguments: str) -> str:
        done = subprocess.run([command, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    for rule in ([], ["--until", "goodput 6 %", "--most", "60"]):
        local = ["run", str(sweep), "--format", "json", *rule]
        assert run(*local, "--dask", address) == run(*local)
    for name, more in [("here", []), ("there", ["--dask", address])]:
        run("reproduce", "AP05-X1", "--seeds", "1", "--out", str(tmp_path / name), *more)
    assert (tmp_path / "here/verdicts.json").read_text() == (tmp_path / "there/verdicts.json").read_text()
    assert json.loads((tmp_path / "there/verdicts.json").read_text())


def test_without_a_scheduler_or_a_worker_it_is_refused(command: str, sweep: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from meshpace import dask

    monkeypatch.setattr(dask, "TIMEOUT_S", 1.0)
    with pytest.raises(meshpace.CarrierError, match="127.0.0.1:1"):
        dask.connect("tcp://127.0.0.1:1")
    monkeypatch.setenv("MESHPACE_PYTHON", "no-such-python")
    done = subprocess.run([command, "run", str(sweep), "--dask", "tcp://127.0.0.1:1"], capture_output=True, text=True)
    assert done.returncode == 2 and "pip install" in done.stderr and done.stdout == ""


def test_a_worker_of_another_revision_is_refused_before_anything_is_run(
    cluster: Cluster, sweep: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from meshpace import dask

    address = cluster.start(workers=1)
    workers = dask.connect(address)
    (worker,) = workers.client.scheduler_info()["workers"]
    ours = meshpace.MODEL_REVISION
    monkeypatch.setattr(dask, "_identity", lambda: (meshpace.__version__, ours + 1, 2, ""))
    with pytest.raises(meshpace.WorkerError) as refused:
        dask.connect(workers.client)
    assert worker in str(refused.value) and f"revision {ours} " in str(refused.value)


#: What a worker preloads that is of another revision, and one in which a constant is another: the reference runs give something else. Dask may load
#: the file twice.
STRANGE = {
    "revision": "answer = _native.identity()\n_native.identity = lambda: (answer[0], 999, *answer[2:])\n",
    "constant": """
import json
if not hasattr(_native, "right"):
    _native.right = _native.work
def work(job, chunk):
    read = json.loads(job)
    # The runs of the campaign give a fingerprint that this worker cannot make.
    read["reference"]["own"] = "0" * 16
    return _native.right(json.dumps(read), chunk)
_native.work = work
""",
}


@pytest.mark.parametrize("kind", [slow_case("revision", "a worker of another revision; one with another constant otherwise"), "constant"])
def test_a_strange_worker_that_joins_late_is_named_once_and_the_bytes_are_those_of_a_local_run(
    cluster: Cluster, slow: Path, tmp_path: Path, kind: str
) -> None:
    from meshpace import dask

    scenario, out = meshpace.Scenario.load(slow), tmp_path / "out"
    preload = tmp_path / "strange.py"
    preload.write_text("from meshpace import _native\n" + STRANGE[kind])
    workers = dask.connect(cluster.start(workers=1))
    joined: list[int] = []

    def join(done: int, total: int, share: float) -> None:
        if done > 0 and not joined:
            joined.append(done)
            cluster.join(2, preload=preload)
            wait_for(lambda: len(workers.client.nthreads()) == 3, "two more workers")

    with pytest.warns(RuntimeWarning, match="another|revision|other results") as told:
        results = scenario.sweep(out=out, executor=workers, chunk_seconds=0.001, progress=join)
    assert results.complete and joined
    addresses = [str(warning.message).split()[1] for warning in told]
    assert len(addresses) == len(set(addresses)) == 2, addresses
    scenario.sweep(out=tmp_path / "local")
    assert (out / "records.jsonl").read_bytes() == (tmp_path / "local" / "records.jsonl").read_bytes()


@pytest.mark.parametrize("kind", ["revision", slow_case("constant", "a worker with another constant; one of another revision otherwise")])
def test_without_a_right_worker_the_campaign_ends_with_its_records_and_the_reason(
    cluster: Cluster, slow: Path, tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("MESHPACE_PYTHON", sys.executable)
    preload, out = tmp_path / "strange.py", tmp_path / "out"
    preload.write_text("from meshpace import _native\n" + STRANGE[kind])
    address = cluster.start(workers=1)
    running = subprocess.Popen([command, "run", str(slow), "--out", str(out), "--dask", address], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    unfinished = out / "unfinished.jsonl"
    wait_for(lambda: unfinished.exists() and unfinished.read_text().count("\n") > 1, "a record")
    # The only right worker stands still before it can finish the campaign, and goes.
    cluster.workers[0].process.send_signal(signal.SIGSTOP)
    cluster.join(1, preload=preload)
    cluster.workers[0].kill()
    _, stderr = running.communicate(timeout=240)
    assert running.returncode == 1 and "no worker is left that gives the same results" in stderr, stderr
    assert ("revision" if kind == "revision" else "other results") in stderr
    assert unfinished.read_text().count("\n") > 1
    done = subprocess.run([command, "run", str(slow), "--out", str(out)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
