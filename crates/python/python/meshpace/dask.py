"""Campaigns on a Dask cluster (``pip install 'meshpace[dask]'``).

>>> import meshpace, meshpace.dask                                       # doctest: +SKIP
>>> workers = meshpace.dask.connect("tcp://scheduler:8786")              # doctest: +SKIP
>>> results = meshpace.Scenario.load("sweep.toml").sweep(out="records", executor=workers)  # doctest: +SKIP

The option ``--dask ADDRESS`` of the command starts ``python3 -m meshpace.dask ADDRESS``, which reads jobs as lines of JSON and writes
their results.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, Callable

from . import _native, _remote
from ._errors import CarrierError, Error, WorkerError

if TYPE_CHECKING:
    # Dask has type annotations for only some of its functions.
    Client = Any

#: Time for which the scheduler, and then the first worker, may take to answer, seconds.
TIMEOUT_S = 30.0


#: Time between two checks for new workers, seconds.
_LOOK_S = 1.0


class Carrier(_remote.Carrier):
    """Hands out chunks through a Dask client.

    A worker that gives other results is reported once and gets no chunks, even if it joins later. If such a worker got a chunk before it
    was recognized, it refuses the chunk, which is then given to another worker.
    """

    def __init__(self, client: Client, tell: Callable[[str], None] | None = None) -> None:
        self.client = client
        self.address = str(client.scheduler.address) if client.scheduler else "the scheduler"
        self._tell = tell
        #: Addresses of workers that give the same results, and addresses of all other workers.
        self._right: set[str] = set()
        self._wrong: set[str] = set()
        #: Chunks that were given to certain workers, with the addresses of these.
        self._given: dict[Future[str], tuple[str, frozenset[str]]] = {}
        self._looked = 0.0
        super().__init__(client.get_executor(pure=False))
        threads = self._introduce()
        if not self._right:
            raise WorkerError(self._strange[0] if self._strange else f"no worker has come to the scheduler within {TIMEOUT_S:.0f} s")
        self._workers = max(1, sum(threads[address] for address in self._right if address in threads))

    def send(self, job: str, chunks: list[str]) -> None:
        """Hands out the chunks of a job to the workers that give its results."""
        self._job = job
        self._sort(sorted(self._right))
        if not self._right:
            raise self.nobody()
        super().send(job, chunks)

    def _hand_out(self, chunk: str) -> Future[str]:
        if not self._wrong:
            return super()._hand_out(chunk)
        right = frozenset(self._right)
        # Dask's own executor also accepts the addresses of workers.
        executor: Any = self.executor
        future: Future[str] = executor.submit(_remote.work, self._job, chunk, workers=sorted(right))
        self._given[future] = (chunk, right)
        return future

    def _introduce(self) -> dict[str, int]:
        """Checks the identity of new workers and removes workers that have left. Returns the number of threads of each worker."""
        threads: dict[str, int] = self.client.nthreads()
        self._right &= threads.keys()
        self._wrong &= threads.keys()
        self._sort(sorted(threads.keys() - self._right - self._wrong))
        return threads

    def _sort(self, addresses: list[str]) -> None:
        """Sorts workers into those that give the same results and the others, which are reported."""
        if not addresses:
            return
        reasons = {address: _difference(theirs) for address, theirs in self._ask(_native.identity, addresses).items()}
        if self._job:
            same = [address for address, reason in reasons.items() if reason is None]
            reasons.update({address: _unlike(answer) for address, answer in self._ask(_remote.fits, same, self._job).items()})
        for address, reason in sorted(reasons.items()):
            self._right.discard(address)
            (self._right if reason is None else self._wrong).add(address)
            if reason is not None:
                self.name(f"worker {address} {reason}")

    def _ask(self, what: Callable[..., object], addresses: list[str], *arguments: str) -> dict[str, object]:
        if not addresses:
            return {}
        try:
            answers: dict[str, object] = self.client.run(what, *arguments, workers=addresses, on_error="return")
        except Exception as error:
            if self.client.status != "running":
                raise self.gone(error) from error
            # Dask cannot transfer every exception of a worker. If there is only one worker, the
            # exception is known to be its own.
            if len(addresses) == 1:
                return {addresses[0]: error}
            answers = {}
            for address in addresses:
                answers.update(self._ask(what, [address], *arguments))
        return answers

    def _refuse(self, chunk: str, error: WorkerError) -> None:
        self._introduce()
        # The worker that refused is known by its address now, or has left again.
        if not self._right:
            raise self.nobody()
        self._tries += 1
        if self._tries > _remote._TRIES:
            self.name(str(error))
            raise self.nobody()
        self._submit(chunk, False)

    def tell(self, sentence: str) -> None:
        """Shows a message to people."""
        if self._tell is None:
            super().tell(sentence)
        else:
            self._tell(sentence)

    def is_lost(self, error: Exception) -> bool:
        """True for ``KilledWorker``, which Dask raises after several workers have died with a chunk.

        Before that, Dask gives the chunk to other workers itself. If Dask loses the scheduler, it cancels all running chunks.
        """
        # Classes of Dask are compared by name, because they have moved between modules.
        kind = type(error).__name__
        if isinstance(error, CancelledError) or kind in ("CommClosedError", "FutureCancelledError"):
            raise self.gone(error) from error
        return kind == "KilledWorker"

    def look(self) -> None:
        """Raises an error if the scheduler is gone, or no worker is left that gives the same results."""
        if self.client.status != "running":
            raise self.gone(ConnectionError(f"status of the client: {self.client.status}"))
        if time.monotonic() - self._looked < _LOOK_S:
            return
        try:
            self._introduce()
        except (OSError, CancelledError, asyncio.TimeoutError) as error:
            raise self.gone(error) from error
        self._looked = time.monotonic()
        if self._wrong and not self._right:
            raise self.nobody()
        # A chunk is given to other workers if all workers that it was given to have left.
        for future, (chunk, workers) in list(self._given.items()):
            if future.done() or future not in self._waiting:
                del self._given[future]
            elif not workers & self._right:
                del self._given[future]
                self._waiting.discard(future)
                future.cancel()
                self._submit(chunk, False)

    def gone(self, error: BaseException) -> CarrierError:
        return CarrierError(f"the scheduler at {self.address} went away ({error}); what was made is kept, and the same campaign goes on from there")


def _identity() -> tuple[str, int, int, str]:
    """Identity that workers must have in common with this program."""
    return _native.identity()


def _difference(theirs: object) -> str | None:
    """Reason why a worker with this identity cannot take part; ``None`` if it can."""
    ours = _identity()
    if not isinstance(theirs, (tuple, list)) or len(theirs) < 3:
        return f"cannot take part: {theirs!r}; it needs meshpace {ours[0]}"
    if tuple(theirs) == ours:
        return None
    if tuple(theirs[:3]) == ours[:3]:
        return "is built otherwise: its reference run gives another fingerprint"
    return (
        f"has meshpace {theirs[0]}, revision {theirs[1]} of the model, format {theirs[2]}; "
        f"this is meshpace {ours[0]}, revision {ours[1]}, format {ours[2]}"
    )


def _unlike(answer: object) -> str | None:
    """Reason why a worker cannot take part, from its answer to `_remote.fits`; ``None`` if it can."""
    return None if answer is None else f"cannot take part: {answer}"


def connect(cluster: Any) -> Carrier:
    """Connects to the workers of a Dask cluster.

    ``cluster`` is the address of the scheduler, a cluster object (``LocalCluster``, ``SLURMCluster``...) or a client. A worker gives other
    results if it has another version, another revision of the model, or another build. A :class:`RuntimeWarning` names such a worker, and
    it gets no runs. Raises :class:`meshpace.CarrierError` if the scheduler does not answer or has no
    worker, and :class:`meshpace.WorkerError` if no worker gives the same results.
    """
    return _connect(cluster, None)


def _connect(cluster: Any, tell: Callable[[str], None] | None) -> Carrier:
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
    return Carrier(client, tell)


def _say(**line: object) -> None:
    print(json.dumps(line), flush=True)


def _serve(address: str) -> int:
    """Runs the jobs of the command, which are read from standard input, one per line."""
    try:
        carrier = _connect(address, lambda sentence: _say(note=sentence))
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
        # The command was interrupted as well, or has ended.
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
