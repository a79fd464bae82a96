"""Chunks of runs on executors, and what workers do with them."""

from __future__ import annotations

import os
import queue
import socket
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future

from . import _native
from ._errors import CarrierError, WorkerError

#: Seconds after which the campaign looks at what else there is to do.
_PAUSE = 0.1


def where() -> str:
    """What this worker is called."""
    return f"{socket.gethostname()}, process {os.getpid()}"


def work(job: str, chunk: str) -> str:
    """Makes a chunk of runs: what workers do."""
    try:
        return _native.work(job, chunk)
    except WorkerError as error:
        raise WorkerError(f"worker {where()}: {error}") from None


class Carrier:
    """Takes chunks to the workers of an executor and brings back what they made.

    A chunk whose worker died is handed out once more; the second time the campaign ends, with what is made kept.
    """

    def __init__(self, executor: Executor, workers: int | None = None) -> None:
        self.executor = executor
        self._workers = workers or int(getattr(executor, "_max_workers", None) or os.cpu_count() or 1)
        self._finished: queue.SimpleQueue[tuple[Future[str], str, bool]] = queue.SimpleQueue()
        self._waiting: set[Future[str]] = set()
        self._job = ""

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
            future = self.executor.submit(work, self._job, chunk)
        except (BrokenExecutor, RuntimeError, OSError) as error:
            raise self.gone(error) from error
        self._waiting.add(future)
        future.add_done_callback(lambda done: self._finished.put((done, chunk, again)))

    def receive(self) -> str | None:
        """What came of another chunk; none if nothing did for a moment."""
        self.look()
        try:
            future, chunk, again = self._finished.get(timeout=_PAUSE)
        except queue.Empty:
            return None
        self._waiting.discard(future)
        try:
            return str(future.result())
        except Exception as error:
            if not self.is_lost(error):
                raise
            lost = error
        self.look()
        if again:
            raise CarrierError(f"a chunk of runs lost its worker twice, the second time with: {lost!r}") from lost
        self._submit(chunk, True)
        return None

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
