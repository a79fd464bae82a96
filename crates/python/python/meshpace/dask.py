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
import time
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any, Callable

from . import _native, _remote
from ._errors import CarrierError, Error, WorkerError

if TYPE_CHECKING:
    # Dask has types for some of its functions only.
    Client = Any

#: Seconds that a scheduler, and the first worker, may take to answer.
TIMEOUT_S = 30.0


#: Seconds after which workers that have come are asked who they are.
_LOOK_S = 1.0


class Carrier(_remote.Carrier):
    """Chunks over a Dask client.

    Workers that give other results are named once and get no chunks, also those that come later. What such a worker has got before it was
    known is refused by it, and goes to the others.
    """

    def __init__(self, client: Client, tell: Callable[[str], None] | None = None) -> None:
        self.client = client
        self.address = str(client.scheduler.address) if client.scheduler else "the scheduler"
        self._tell = tell
        #: Addresses of workers that give the same results, and of the others.
        self._right: set[str] = set()
        self._wrong: set[str] = set()
        #: Chunks that were given to certain workers.
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
        # Dask's own executor takes the addresses besides.
        executor: Any = self.executor
        future: Future[str] = executor.submit(_remote.work, self._job, chunk, workers=sorted(right))
        self._given[future] = (chunk, right)
        return future

    def _introduce(self) -> dict[str, int]:
        """Asks workers that have come who they are, and forgets those that have gone: the threads of all that are there."""
        threads: dict[str, int] = self.client.nthreads()
        self._right &= threads.keys()
        self._wrong &= threads.keys()
        self._sort(sorted(threads.keys() - self._right - self._wrong))
        return threads

    def _sort(self, addresses: list[str]) -> None:
        """Parts workers into those that give the same results and the others, which are named."""
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
            # Dask does not bring back every exception of a worker whole: one alone is the one that raised.
            if len(addresses) == 1:
                return {addresses[0]: error}
            answers = {}
            for address in addresses:
                answers.update(self._ask(what, [address], *arguments))
        return answers

    def _refuse(self, chunk: str, error: WorkerError) -> None:
        self._introduce()
        # Who has refused is known by its address now, or has gone again.
        if not self._right:
            raise self.nobody()
        self._tries += 1
        if self._tries > _remote._TRIES:
            self.name(str(error))
            raise self.nobody()
        self._submit(chunk, False)

    def tell(self, sentence: str) -> None:
        """Says something to people."""
        if self._tell is None:
            super().tell(sentence)
        else:
            self._tell(sentence)

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
        # What was given to workers that have all gone goes to others.
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
    """What workers must have in common with this program."""
    return _native.identity()


def _difference(theirs: object) -> str | None:
    """Why a worker of this identity cannot take part; ``None`` if it can."""
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
    """Why a worker cannot take part that has answered so whether it gives the results of the job; ``None`` if it can."""
    return None if answer is None else f"cannot take part: {answer}"


def connect(cluster: Any) -> Carrier:
    """The workers of a Dask cluster: the address of its scheduler, a cluster object (``LocalCluster``, ``SLURMCluster``...) or a client.

    A worker that gives other results, because it is of another version, another revision of the model, or built otherwise, is
    named in a :class:`RuntimeWarning` and gets no runs. Raises :class:`meshpace.CarrierError` if the scheduler does not answer or has no
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
    """Carries the jobs of the command, which come on standard input, one line each."""
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
        # The command has been interrupted too, or is gone.
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
