"""What can go wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Sequence


class Error(Exception):
    """Everything that this package raises of its own."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a scenario."""

    #: The sentence.
    message: str
    #: The file, or what stands for it; the line and the column in it, from 1; none if no line is to blame.
    file: str
    line: int | None
    column: int | None
    #: The key.
    key: str | None
    #: What was expected there, and a way out.
    expected: str
    help: str | None
    #: The point of the sweep that has it.
    point: str | None
    #: The `key=value` that is to blame.
    set: str | None


class ScenarioError(Error, ValueError):
    """A scenario that is refused, with everything that is wrong with it."""

    def __init__(self, text: str, problems: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(text, problems)
        self.problems = [Problem(**problem) for problem in problems]

    def __str__(self) -> str:
        return str(self.args[0])

    def _first(self) -> Problem | None:
        return self.problems[0] if self.problems else None

    @property
    def file(self) -> str | None:
        """The file of the first problem."""
        first = self._first()
        return first.file if first else None

    @property
    def line(self) -> int | None:
        """Its line, from 1."""
        first = self._first()
        return first.line if first else None

    @property
    def key(self) -> str | None:
        """Its key."""
        first = self._first()
        return first.key if first else None


class RecordsError(Error):
    """Records that cannot be kept, read or compared; the text names the directory or file."""


class RunError(Error):
    """A run that failed; the text says which and why."""


class WorkerError(Error):
    """A worker that cannot take part: it is of another version or another revision of the model, or lacks this package."""


class CarrierError(Error):
    """The way to the workers is gone, or a chunk was lost twice. What was made until then is kept."""
