"""Distribution of chunks of runs to executors, and the side of the workers."""

from __future__ import annotations

import json
import os
import queue
import socket
import time
import warnings
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future

from . import _native
from ._errors import CarrierError, WorkerError

#: Time for which the campaign waits for a result before it does other work, seconds.
_PAUSE = 0.1
#: Number of successive refusals of chunks after which no suitable worker is assumed to exist.
_TRIES = 20
#: Key of the reason in the answer of a worker that refuses a chunk.
_REFUSED = "refused"


def where() -> str:
    """Name of this worker."""
    return f"{socket.gethostname()}, process {os.getpid()}"


def work(job: str, chunk: str) -> str:
    """Makes a chunk of runs on a worker, or returns why this worker refuses it.

    A refusal is a result and not an exception, because not every cluster transfers exceptions of tasks unchanged.
    """
    try:
        return _native.work(job, chunk)
    except WorkerError as error:
        return json.dumps({_REFUSED: f"worker {where()}: {error}"})


def fits(job: str) -> str | None:
    """Reason why this worker cannot reproduce the results of a job; ``None`` if it can."""
    try:
        _native.work(job, "[]")
    except Exception as error:
        return str(error)
    return None


class Carrier:
    """Hands out chunks to the workers of an executor and returns their results.

    A chunk whose worker died is handed out a second time. If that worker dies as well, the campaign ends, and the records made until
    then are kept. A worker that gives other results refuses its chunk. A message names such a worker once, and the chunk waits until
    another worker has finished a chunk.
    """

    def __init__(self, executor: Executor, workers: int | None = None) -> None:
        self.executor = executor
        self._workers = workers or int(getattr(executor, "_max_workers", None) or os.cpu_count() or 1)
        self._finished: queue.SimpleQueue[tuple[Future[str], str, bool]] = queue.SimpleQueue()
        self._waiting: set[Future[str]] = set()
        self._job = ""
        #: Chunks that were refused and wait for another worker, and number of refusals since the
        #: last finished chunk.
        self._refused: list[str] = []
        self._tries = 0
        #: Reasons why workers refused chunks, each listed once.
        self._strange: list[str] = []

    def workers(self) -> int:
        """Approximate number of workers."""
        return self._workers

    def send(self, job: str, chunks: list[str]) -> None:
        """Hands out the chunks of a job."""
        self._job = job
        for chunk in chunks:
            self._submit(chunk, False)

    def _submit(self, chunk: str, again: bool) -> None:
        try:
            future = self._hand_out(chunk)
        except (BrokenExecutor, RuntimeError, OSError) as error:
            raise self.gone(error) from error
        self._waiting.add(future)
        future.add_done_callback(lambda done: self._finished.put((done, chunk, again)))

    def _hand_out(self, chunk: str) -> Future[str]:
        return self.executor.submit(work, self._job, chunk)

    def receive(self) -> str | None:
        """Result of the next finished chunk; ``None`` if no chunk is finished within a short time."""
        self.look()
        try:
            future, chunk, again = self._finished.get(timeout=_PAUSE)
        except queue.Empty:
            return None
        if future not in self._waiting:
            return None
        self._waiting.discard(future)
        try:
            made = str(future.result())
            # The results of a chunk are a list. A refusal is an object.
            if made.startswith("{"):
                raise WorkerError(str(json.loads(made)[_REFUSED]))
        except WorkerError as error:
            self._refuse(chunk, error)
            return None
        except Exception as error:
            if not self.is_lost(error):
                raise
            lost = error
        else:
            # The worker that finished this chunk gives the same results and is free now.
            self._tries = 0
            if self._refused:
                self._submit(self._refused.pop(), False)
            return made
        self.look()
        if again:
            raise CarrierError(f"a chunk of runs lost its worker twice, the second time with: {lost!r}") from lost
        self._submit(chunk, True)
        return None

    def _refuse(self, chunk: str, error: WorkerError) -> None:
        """Handles the refusal of a worker that gives other results. It gets no further chunk if the executor lets us choose."""
        self.name(str(error))
        self._refused.append(chunk)
        if self._waiting:
            return
        # Every chunk that was handed out has been refused. The executor chooses the worker, so
        # another worker may get the next attempt.
        self._tries += 1
        if self._tries > _TRIES:
            raise self.nobody()
        time.sleep(_PAUSE)
        self._submit(self._refused.pop(), False)

    def name(self, reason: str) -> None:
        """Reports a worker that cannot take part. Each reason is reported once."""
        if reason not in self._strange:
            self._strange.append(reason)
            self.tell(f"{reason}; it gets no more runs")

    def tell(self, sentence: str) -> None:
        """Shows a message to people."""
        warnings.warn(sentence, RuntimeWarning, stacklevel=2)

    def nobody(self) -> WorkerError:
        """Exception for the case that no worker gives the same results."""
        reasons = "; ".join(self._strange[:3])
        return WorkerError(f"no worker is left that gives the same results; what was made is kept, and the same campaign goes on with it ({reasons})")

    def is_lost(self, error: Exception) -> bool:
        """True if a worker died, so that another worker may make the chunk. Raises :class:`CarrierError` if no other worker can."""
        return isinstance(error, (BrokenExecutor, CancelledError))

    def look(self) -> None:
        """Raises :class:`CarrierError` if no further results can arrive."""

    def gone(self, error: BaseException) -> CarrierError:
        """Exception for the case that the executor takes no more chunks."""
        return CarrierError(f"the executor takes no more chunks ({error!r}); what was made is kept, and the same campaign goes on with it")

    def cancel(self) -> None:
        """Cancels the chunks that no worker has started."""
        for future in list(self._waiting):
            future.cancel()
        self._waiting.clear()
        self._refused.clear()


def carry(executor: object) -> Carrier:
    """Creates the carrier for an executor."""
    if isinstance(executor, Carrier):
        return executor
    if isinstance(executor, Executor):
        # An executor of Dask has a client, which detects the loss of the scheduler.
        client = getattr(executor, "_client", None)
        if client is not None and hasattr(client, "scheduler_info"):
            from .dask import Carrier as DaskCarrier

            return DaskCarrier(client)
        return Carrier(executor)
    raise TypeError(f"executor: {type(executor).__name__} is none of concurrent.futures")
