"""Campaigns on a Dask cluster (``pip install 'meshpace[dask]'``).

>>> import meshpace, meshpace.dask                                       # doctest: +SKIP
>>> workers = meshpace.dask.connect("tcp://scheduler:8786")              # doctest: +SKIP
>>> results = meshpace.Scenario.load("sweep.toml").sweep(out="records", executor=workers)  # doctest: +SKIP

``python3 -m meshpace.dask ADDRESS`` is what the command's ``--dask ADDRESS`` talks to: it reads jobs as lines of JSON and writes
what was made of them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from . import _native, _remote
from ._errors import CarrierError, Error, WorkerError

if TYPE_CHECKING:
    # Dask has types for some of its functions only.
    Client = Any

#: Seconds that a scheduler, and the first worker, may take to answer.
TIMEOUT_S = 30.0


class Carrier(_remote.Carrier):
    """Chunks over a Dask client."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.address = str(client.scheduler.address) if client.scheduler else "the scheduler"
        threads = _check(client)
        super().__init__(client.get_executor(pure=False), threads)

    def is_lost(self, error: Exception) -> bool:
        """Dask gives a chunk to another worker by itself; ``KilledWorker`` is raised when several have died of it.

        It cancels what is under way when it loses the scheduler.
        """
        # Classes of Dask by their names: they have moved from module to module.
        kind = type(error).__name__
        if isinstance(error, CancelledError) or kind in ("CommClosedError", "FutureCancelledError"):
            raise self.gone(error) from error
        return kind == "KilledWorker"

    def look(self) -> None:
        """Raises :class:`CarrierError` if the scheduler is gone."""
        if self.client.status != "running":
            raise self.gone(ConnectionError(f"status of the client: {self.client.status}"))

    def gone(self, error: BaseException) -> CarrierError:
        return CarrierError(f"the scheduler at {self.address} went away ({error}); what was made is kept, and the same campaign goes on from there")


def _identity() -> tuple[str, int, int]:
    """What workers must have in common with this program."""
    return _native.identity()


def _check(client: Client) -> int:
    """The threads of all workers, if every worker gives the same results as this program."""
    ours = _identity()
    answers: dict[str, Any] = client.run(_native.identity, on_error="return")
    if not answers:
        raise CarrierError(f"no worker has come to the scheduler within {TIMEOUT_S:.0f} s")
    for address, theirs in sorted(answers.items()):
        if isinstance(theirs, BaseException):
            raise WorkerError(f"worker {address} cannot take part: {theirs!r}; it needs meshpace {ours[0]}")
        if tuple(theirs) != ours:
            raise WorkerError(
                f"worker {address} has meshpace {theirs[0]}, revision {theirs[1]} of the model, format {theirs[2]}; "
                f"this is meshpace {ours[0]}, revision {ours[1]}, format {ours[2]}"
            )
    threads: dict[str, int] = client.nthreads()
    return max(1, sum(threads.values()))


def connect(cluster: Any) -> Carrier:
    """The workers of a Dask cluster: the address of its scheduler, a cluster object (``LocalCluster``, ``SLURMCluster``...) or a client.

    Raises :class:`meshpace.CarrierError` if the scheduler does not answer or has no worker, and :class:`meshpace.WorkerError`
    if a worker is of another version, or of another revision of the model.
    """
    try:
        import distributed
    except ImportError as error:
        raise ImportError("Dask is not installed here: pip install 'meshpace[dask]'") from error
    kind: Any = distributed.Client
    try:
        client = cluster if isinstance(cluster, kind) else kind(cluster, timeout=TIMEOUT_S, set_as_default=False)
    except (OSError, ValueError, asyncio.TimeoutError) as error:
        raise CarrierError(f"the scheduler at {cluster} does not answer: {error}") from error
    try:
        client.wait_for_workers(1, timeout=TIMEOUT_S)
    except (TimeoutError, asyncio.TimeoutError) as error:
        raise CarrierError(f"no worker has come to the scheduler at {cluster} within {TIMEOUT_S:.0f} s") from error
    return Carrier(client)


def _say(**line: object) -> None:
    print(json.dumps(line), flush=True)


def _serve(address: str) -> int:
    """Carries the jobs of the command, which come on standard input, one line each."""
    try:
        carrier = connect(address)
    except (Error, ImportError) as error:
        _say(refused=str(error))
        return 2
    _say(workers=carrier.workers())
    for line in sys.stdin:
        order = json.loads(line)
        left = len(order["chunks"])
        try:
            carrier.send(order["job"], order["chunks"])
            while left > 0:
                made = carrier.receive()
                if made is not None:
                    _say(made=made)
                    left -= 1
        except Error as error:
            _say(lost=str(error))
            return 1
    return 0


def main(arguments: list[str]) -> int:
    """The program behind ``--dask``."""
    if len(arguments) != 1:
        print("usage: python3 -m meshpace.dask tcp://SCHEDULER:8786", file=sys.stderr)
        return 2
    try:
        return _serve(arguments[0])
    except (KeyboardInterrupt, BrokenPipeError):
        # The command has been interrupted too, or is gone.
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
