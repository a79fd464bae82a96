"""Converts trees of Python objects to TOML."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Set
from decimal import Decimal
from fractions import Fraction
from typing import Any, Iterable, Mapping


def _text(text: str) -> str:
    # All escapes of JSON are valid in TOML. TOML requires one more, for DEL.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key)


def value(item: Any) -> str:
    """A value in one line."""
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, str):
        return _text(item)
    # The methods of int and float are called directly, since subclasses such as numpy.float64 and
    # the members of an IntEnum have other representations.
    if isinstance(item, int):
        return int.__repr__(item)
    if isinstance(item, float):
        return _float(item)
    if isinstance(item, Mapping):
        return "{ " + ", ".join(f"{_key(str(key))} = {value(inner)}" for key, inner in item.items()) + " }"
    # Scalars of numpy, and zero-dimensional arrays of numpy and similar packages.
    if getattr(item, "shape", None) == () and hasattr(item, "item"):
        inner = item.item()
        # The item of a numpy.longdouble is a numpy.longdouble again.
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
    """A number of another type: an integer if its type or its value is integral, otherwise the nearest float."""
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
        # The value is not a single number: an array of several elements, or a quantity with a unit.
        pass
    raise TypeError(f"a scenario has no value of type {type(item).__name__}: {item!r}")


def _elements(item: Any) -> Iterable[Any] | None:
    """Elements of a sequence: a list, a tuple, a range, an array, a series. ``None`` for other types and for unordered collections."""
    if isinstance(item, (str, bytes, bytearray, memoryview, Mapping, Set)):
        return None
    if hasattr(item, "tolist"):
        listed = item.tolist()
        return listed if isinstance(listed, list) else None
    is_sequence = all(hasattr(type(item), method) for method in ("__len__", "__getitem__", "__iter__"))
    return list(item) if is_sequence else None


def values(item: Any) -> str:
    """One value, or the values of a sequence separated by commas."""
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
