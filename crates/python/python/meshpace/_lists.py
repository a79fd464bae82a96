"""Names that a scenario can use: transports and keys."""

from __future__ import annotations

from . import _native
from ._table import Table


def transports() -> Table:
    """The transports that ``flow.transport`` can name, one row each: ``name``, ``description``, ``parameters``, ``source``."""
    return Table(_native.table(_native.transports()))


def keys(section: str | None = None) -> Table:
    """The keys of a scenario, one row each: ``key``, ``takes``, ``default``, ``meaning``, ``source``, ``level`` (``"basic"`` before ``"expert"``).

    ``section`` is a section such as ``"flow"`` or ``"radio"``, or one key. Raises :class:`ValueError` if there is no section or key of that name.
    """
    return Table(_native.table(_native.keys(section)))
