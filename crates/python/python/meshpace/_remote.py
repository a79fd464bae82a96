"""Chunks of runs on executors, and what workers do with them."""

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

#: Seconds after which the campaign looks at what else there is to do.
_PAUSE = 0.1
#: How often in succession chunks may be refused before nobody is taken to be there who makes them.
_TRIES = 20
#: Name of the reason in the answer of a worker that refuses a chunk.
_REFUSED = "refused"


def where() -> str:
    """What this worker is called."""
    return f"{socket.gethostname()}, process {os.getpid()}"


def work(job: str, chunk: str) -> str:
    """Makes a chunk of runs, or says why this worker does not: what workers do.

    A refusal is an answer and no exception: not every cluster brings back exceptions of tasks whole.
    """
    try:
        return _native.work(job, chunk)
    except WorkerError as error:
        return json.dumps({_REFUSED: f"worker {where()}: {error}"})


def fits(job: str) -> str | None:
    """Why this worker does not give the results of a job; ``None`` if it does."""
    try:
        _native.work(job, "[]")
    except Exception as error:
        return str(error)
    return None


class Carrier:
    """Takes chunks to the workers of an executor and brings back what they made.

    A chunk whose worker died is handed out once more; the second time the campaign ends, with what is made kept. A worker that gives
    other results refuses its chunk: it is named once, and the chunk waits until another worker has made one.
    """

    def __init__(self, executor: Executor, workers: int | None = None) -> None:
        self.executor = executor
        self._workers = workers or int(getattr(executor, "_max_workers", None) or os.cpu_count() or 1)
        self._finished: queue.SimpleQueue[tuple[Future[str], str, bool]] = queue.SimpleQueue()
        self._waiting: set[Future[str]] = set()
        self._job = ""
        #: Chunks that were refused and wait for another worker, and how often that happened since one was made.
        self._refused: list[str] = []
        self._tries = 0
        #: Why workers were refused, one by one.
        self._strange: list[str] = []

    def workers(self) -> int:
        """How many workers there are, about."""
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
        """What came of another chunk; none if nothing did for a moment."""
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
            # What was made is a list.
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
            # A worker that gives the same results is free.
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
        """A worker gives other results: it gets nothing more as far as that is in our hands."""
        self.name(str(error))
        self._refused.append(chunk)
        if self._waiting:
            return
        # Every chunk that was out has been refused. Which worker takes one is not in our hands: another may.
        self._tries += 1
        if self._tries > _TRIES:
            raise self.nobody()
        time.sleep(_PAUSE)
        self._submit(self._refused.pop(), False)

    def name(self, reason: str) -> None:
        """Names a worker that cannot take part, once."""
        if reason not in self._strange:
            self._strange.append(reason)
            self.tell(f"{reason}; it gets no more runs")

    def tell(self, sentence: str) -> None:
        """Says something to people."""
        warnings.warn(sentence, RuntimeWarning, stacklevel=2)

    def nobody(self) -> WorkerError:
        """What is said when no worker gives the same results."""
        reasons = "; ".join(self._strange[:3])
        return WorkerError(f"no worker is left that gives the same results; what was made is kept, and the same campaign goes on with it ({reasons})")

    def is_lost(self, error: Exception) -> bool:
        """Whether a worker died, so that another may do better. Raises :class:`CarrierError` if none will."""
        return isinstance(error, (BrokenExecutor, CancelledError))

    def look(self) -> None:
        """Raises :class:`CarrierError` if there will be nothing more."""

    def gone(self, error: BaseException) -> CarrierError:
        """What is said when nobody takes chunks."""
        return CarrierError(f"the executor takes no more chunks ({error!r}); what was made is kept, and the same campaign goes on with it")

    def cancel(self) -> None:
        """Takes back what has not begun."""
        for future in list(self._waiting):
            future.cancel()
        self._waiting.clear()
        self._refused.clear()


def carry(executor: object) -> Carrier:
    """The carrier over an executor."""
    if isinstance(executor, Carrier):
        return executor
    if isinstance(executor, Executor):
        # An executor of Dask knows its client, which knows when the scheduler is gone.
        client = getattr(executor, "_client", None)
        if client is not None and hasattr(client, "scheduler_info"):
            from .dask import Carrier as DaskCarrier

            return DaskCarrier(client)
        return Carrier(executor)
    raise TypeError(f"executor: {type(executor).__name__} is none of concurrent.futures")
