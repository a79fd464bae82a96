"""Tables for pandas, polars, pyarrow and notebooks."""

from __future__ import annotations

import itertools
import json
from html import escape
from typing import TYPE_CHECKING, Any, Iterator

from . import _native

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped, unused-ignore]

#: Number of records that are read at a time.
_AT_ONCE = 16_384
#: Number of rows that a notebook shows.
_SHOWN = 20


class Table:
    """A table, as a stream through Arrow's C interface and as an iterable of rows.

    ``pandas.DataFrame(table)``, ``table.to_pandas()``, ``polars.DataFrame(table)``, ``pyarrow.table(table)``, DuckDB. The iterable has a dictionary for
    each row; a value that could not be measured is ``None``. A table is made while it is read, so it may be larger than memory. It can be pickled.
    """

    def __init__(self, native: _native.Table) -> None:
        self._native = native
        self._length: int | None = None

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._native.columns

    def __iter__(self) -> Iterator[dict[str, Any]]:
        columns, first = self.columns, 0
        while (rows := self._native.rows(first, _AT_ONCE)) is not None:
            yield from (dict(zip(columns, json.loads(row))) for row in rows)
            first += _AT_ONCE

    def __len__(self) -> int:
        if self._length is None:
            self._length = sum(1 for _ in self)
        return self._length

    def to_pandas(self) -> pandas.DataFrame:
        """Converts the table to a pandas data frame. If pyarrow is installed, the types of the columns are kept."""
        import pandas

        try:
            import pyarrow  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            return pandas.DataFrame(list(self), columns=self.columns)
        frame: pandas.DataFrame = pyarrow.table(self).to_pandas()
        return frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> Any:
        return self._native.__arrow_c_schema__()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, self._native.state()

    def _repr_html_(self) -> str:
        """The first rows, for notebooks; columns in which nothing was measured are left out."""
        rows = list(itertools.islice(self, _SHOWN))
        columns = [name for name in self.columns if any(row[name] is not None for row in rows)]
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        body = "".join("<tr>" + "".join(f"<td>{_cell(row[name])}</td>" for name in columns) + "</tr>" for row in rows)
        left = len(self) - len(rows)
        more = f"<p>and {left} more rows</p>" if left else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def __repr__(self) -> str:
        return f"<meshpace.Table of {len(self)} rows, {len(self.columns)} columns>"


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return escape(f"{value:.6g}" if isinstance(value, float) else str(value))


def _restored(lines: list[str], rows: str) -> Table:
    return Table(_native.restored(lines, rows))
