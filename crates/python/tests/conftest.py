"""What the tests share."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

ROOT = Path(__file__).resolve().parents[3]

#: Runs of some hundredths of a second each.
SWEEP = """
title = "Chains"
duration = "4 s"
warmup = "1 s"
[[flow]]
[sweep]
"topology.hops" = [1, 2, 3, 4]
"flow.transport" = ["newreno", "tcp-ap"]
seeds = 3
"""


#: Runs of some tenths of a second, so that there is a middle in which something can be killed.
SLOW = """
title = "A chain"
duration = "300 s"
topology.hops = 4
[[flow]]
[sweep]
"flow.transport" = ["newreno", "tcp-ap"]
seeds = 12
"""


#: Classes of reasons for which a test is skipped, as in `crates/testing`. A reason without one of
#: these words in front is about something that could be installed.
CLASSES = ("slow", "rights")


def slow_only(reason: str) -> pytest.MarkDecorator:
    """A mark for tests that run with MESHPACE_SLOW only, as `./check slow` sets it."""
    return pytest.mark.skipif(not os.environ.get("MESHPACE_SLOW"), reason=f"slow: {reason}")


def slow_case(value: str, reason: str) -> Any:
    """A parameter of a test that is :func:`slow_only`."""
    return pytest.param(value, marks=slow_only(reason))


def needs_program(program: str, package: str) -> pytest.MarkDecorator:
    """A mark for tests that need a program of a Debian package."""
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed (apt-get install {package})")


def skip_line(nodeid: str, longrepr: Any) -> str:
    """The line that reports a skipped test or file of tests; its form is that of `crates/testing`."""
    file, _, test = nodeid.partition("::")
    said = " ".join(str(longrepr[2]).removeprefix("Skipped: ").split())
    kind, separator, reason = said.partition(": ")
    if not separator or kind not in CLASSES:
        kind, reason = "tools", said
    return f"SKIPPED {kind}: crates/python/tests/{Path(file).name}: {test or 'all tests of the file'}: {reason}\n"


def _list_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Appends a skipped test to the file that MESHPACE_SKIPS names. `./check` lists the lines of that file."""
    listed = os.environ.get("MESHPACE_SKIPS")
    if listed and report.skipped and isinstance(report.longrepr, tuple):
        with open(listed, "a") as file:
            file.write(skip_line(report.nodeid, report.longrepr))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Lists every skipped test, whatever skipped it."""
    _list_skip(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Lists every file that skips all of its tests."""
    _list_skip(report)


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A file with a sweep of 24 runs that take their time."""
    file = tmp_path / "slow.toml"
    file.write_text(SLOW)
    return file


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    """A file with a sweep of 8 points, 3 seeds each."""
    file = tmp_path / "chains.toml"
    file.write_text(SWEEP)
    return file


@pytest.fixture(scope="session")
def command() -> str:
    """The command, as `MESHPACE_COMMAND` names it or as the workspace has built it."""
    named = os.environ.get("MESHPACE_COMMAND")
    for candidate in [named] if named else [str(ROOT / "target/debug/meshpace"), str(ROOT / "target/quick/meshpace")]:
        found = shutil.which(candidate)
        if found:
            return found
    pytest.skip("the command is not built (cargo build)")


class Program:
    """A program that is ended when the test is."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
    """Waits until it holds; a failure if it does not in a time that no machine needs."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)


class Cluster:
    """A scheduler of Dask and workers, each a process of its own, started by Dask's own command line."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.workers: list[Program] = []
        self.scheduler: Program | None = None
        self.address = ""
        self.file = directory / "scheduler.json"

    def start(self, workers: int) -> str:
        """Starts them, and gives the scheduler's address."""
        import json

        self.file.unlink(missing_ok=True)
        dask = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
        self.scheduler = Program(*dask, "--no-dashboard", "--scheduler-file", str(self.file))
        wait_for(lambda: self.file.exists() and self.file.stat().st_size > 0, "the scheduler's file")
        address: str = ""

        def answers() -> bool:
            nonlocal address
            try:
                address = json.loads(self.file.read_text())["address"]
            except ValueError:
                return False
            return True

        wait_for(answers, "the scheduler's address")
        self.address = address
        self.join(workers)
        from distributed import Client

        client: Any = Client
        with client(address, timeout=120, set_as_default=False) as waiting:
            waiting.wait_for_workers(workers, timeout=120)
        return address

    def join(self, workers: int, preload: Path | None = None) -> None:
        """Starts more workers, which run a file first if told."""
        more = [] if preload is None else ["--preload", str(preload)]
        for _ in range(workers):
            worker = [sys.executable, "-m", "distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
            self.workers.append(Program(*worker, "--local-directory", str(self.directory), *more))

    def stop(self) -> None:
        for program in [*self.workers, *([self.scheduler] if self.scheduler else [])]:
            program.kill()
        self.workers, self.scheduler = [], None


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("distributed")
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.stop()
