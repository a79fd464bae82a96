"""Trees of Python as TOML."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Set
from decimal import Decimal
from fractions import Fraction
from typing import Any, Iterable, Mapping


def _text(text: str) -> str:
    # The escapes of JSON are escapes of TOML; TOML wants one more.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key)


def value(item: Any) -> str:
    """A value in one line."""
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, str):
        return _text(item)
    # Subclasses of int and float, such as numpy.float64 and members of an IntEnum, have texts of their own.
    if isinstance(item, int):
        return int.__repr__(item)
    if isinstance(item, float):
        return _float(item)
    if isinstance(item, Mapping):
        return "{ " + ", ".join(f"{_key(str(key))} = {value(inner)}" for key, inner in item.items()) + " }"
    # Scalars of numpy, and arrays of it and of others that have no dimension.
    if getattr(item, "shape", None) == () and hasattr(item, "item"):
        inner = item.item()
        # A long double stays what it is.
        return _float(float(inner)) if type(inner) is type(item) else value(inner)
    elements = _elements(item)
    if elements is not None:
        return "[" + ", ".join(value(inner) for inner in elements) + "]"
    return _number(item)


def _float(number: float) -> str:
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return "nan" if math.isnan(number) else float.__repr__(number)


def _number(item: Any) -> str:
    """A number of any other type: whole, if the type or the value is whole, else the nearest float."""
    if isinstance(item, Decimal) and not item.is_finite():
        return _float(float(item))
    if isinstance(item, (Decimal, Fraction)) and item == int(item):
        return str(int(item))
    try:
        if hasattr(type(item), "__index__"):
            return str(item.__index__())
        if hasattr(type(item), "__float__"):
            return _float(float(item))
    except (TypeError, ValueError):
        # An array of several, a quantity with a unit.
        pass
    raise TypeError(f"a scenario has no value of type {type(item).__name__}: {item!r}")


def _elements(item: Any) -> Iterable[Any] | None:
    """The elements of a sequence: a list, a tuple, a range, an array, a series; ``None`` for what is none, or has no order."""
    if isinstance(item, (str, bytes, bytearray, memoryview, Mapping, Set)):
        return None
    if hasattr(item, "tolist"):
        listed = item.tolist()
        return listed if isinstance(listed, list) else None
    is_sequence = all(hasattr(type(item), method) for method in ("__len__", "__getitem__", "__iter__"))
    return list(item) if is_sequence else None


def values(item: Any) -> str:
    """One value or those of a sequence, with commas between them."""
    elements = _elements(item)
    return value(item) if elements is None else ",".join(value(inner) for inner in elements)


def _is_tables(item: Any) -> bool:
    elements = list(_elements(item) or [])
    return len(elements) > 0 and all(isinstance(inner, Mapping) for inner in elements)


def _write(lines: list[str], path: str, tree: Mapping[str, Any]) -> None:
    later: list[tuple[str, Any]] = []
    for key, item in tree.items():
        if isinstance(item, Mapping) or _is_tables(item):
            later.append((str(key), item))
        else:
            lines.append(f"{_key(str(key))} = {value(item)}")
    for key, item in later:
        name = f"{path}.{_key(key)}" if path else _key(key)
        if isinstance(item, Mapping):
            lines.append(f"\n[{name}]")
            _write(lines, name, item)
        else:
            for inner in _elements(item) or []:
                lines.append(f"\n[[{name}]]")
                _write(lines, name, inner)


def document(tree: Mapping[str, Any]) -> str:
    """A whole document."""
    lines: list[str] = []
    _write(lines, "", tree)
    return "\n".join(lines).lstrip("\n") + "\n"
