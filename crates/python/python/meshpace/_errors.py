"""Exceptions of the package."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Sequence


class Error(Exception):
    """Base class of the exceptions of this package."""


@dataclass(frozen=True)
class Problem:
    """One error in a scenario."""

    #: Message, one sentence.
    message: str
    #: File, or its substitute for a text or a dictionary, and line and column of the problem, both
    #: from 1. Line and column are ``None`` if the problem has no place in the file.
    file: str
    line: int | None
    column: int | None
    #: Key that has the problem.
    key: str | None
    #: Expected value, and advice.
    expected: str
    help: str | None
    #: First point of the sweep that has the problem.
    point: str | None
    #: Argument ``key=value`` that caused the problem.
    set: str | None


class ScenarioError(Error, ValueError):
    """A scenario is refused; the exception contains all of its errors."""

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
        """The line of the first problem, from 1."""
        first = self._first()
        return first.line if first else None

    @property
    def key(self) -> str | None:
        """The key of the first problem."""
        first = self._first()
        return first.key if first else None


class RecordsError(Error):
    """Records cannot be kept, read or compared; the message names the directory or file."""


class RunError(Error):
    """A run failed; the message says which run and why."""


class WorkerError(Error):
    """A worker cannot take part: it has another version or another revision of the model, or lacks this package."""


class CarrierError(Error):
    """The connection to the workers is lost, or a chunk was lost twice. Records made until then are kept."""
