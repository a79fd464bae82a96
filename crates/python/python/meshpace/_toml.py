"""Trees of Python as TOML."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Mapping


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
    if isinstance(item, int):
        return str(item)
    if isinstance(item, float):
        if math.isnan(item) or math.isinf(item):
            return str(item)
        return repr(item)
    if isinstance(item, Mapping):
        return "{ " + ", ".join(f"{_key(str(key))} = {value(inner)}" for key, inner in item.items()) + " }"
    if isinstance(item, (list, tuple)):
        return "[" + ", ".join(value(inner) for inner in item) + "]"
    # Numbers of numpy and others that behave as Python's.
    if hasattr(item, "item"):
        return value(item.item())
    raise TypeError(f"a scenario has no value of type {type(item).__name__}: {item!r}")


def _is_tables(item: Any) -> bool:
    return isinstance(item, (list, tuple)) and len(item) > 0 and all(isinstance(inner, Mapping) for inner in item)


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
            for inner in item:
                lines.append(f"\n[[{name}]]")
                _write(lines, name, inner)


def document(tree: Mapping[str, Any]) -> str:
    """A whole document."""
    lines: list[str] = []
    _write(lines, "", tree)
    return "\n".join(lines).lstrip("\n") + "\n"
