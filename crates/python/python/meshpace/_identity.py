"""The identity of a pacing rule of Python: its source, and every value that decides what it does.

A directory of records may be extended only by the rule that made them. :func:`identify` walks from a rule to all that it uses: the
sources of its functions and methods, the variables that they capture, the globals that they load, their default arguments, and
the attributes of classes and objects. The result depends neither on the file and the process of the rule nor on the version of Python.
"""

from __future__ import annotations

import dis
import enum
import functools
import hashlib
import inspect
import json
import os
import sys
import sysconfig
import textwrap
import types
from typing import Any, Iterator, NamedTuple

#: Longest text that is stored as it is. A longer text is represented by its SHA-256.
_LONGEST = 60

#: Attributes of classes that Python or :mod:`abc` sets, and that do not change the effect of a
#: rule.
_IGNORED = {"__annotations__", "__dict__", "__doc__", "__module__", "__qualname__", "__weakref__", "_abc_impl", "__abstractmethods__",
            "__firstlineno__", "__static_attributes__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__parameters__", "__orig_bases__"}  # fmt: skip

_INSTALLED = tuple(os.path.join(path, "") for path in {sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")})


class Identity(NamedTuple):
    """Identity of a rule."""

    #: Source of the rule; empty if the source is not available.
    source: str
    #: Identity chosen by the user, for rules with a part that cannot be compared.
    id: str | None
    #: Text of every part, by the part's name.
    parts: dict[str, str]
    #: Names of the parts that cannot be compared, with the reason.
    missing: dict[str, str]

    @property
    def digest(self) -> str:
        """SHA-256 of all parts and of the chosen id."""
        return _sha256(json.dumps([self.id, sorted(self.parts.items())]))

    def manifest(self, name: str, flows: list[int] | None) -> str:
        """The entry of a manifest for a rule of these flows, as JSON."""
        return json.dumps({"name": name, "id": self.id, "source": self.source, "parts": self.parts, "flows": flows})

    def require_comparable(self, name: str) -> None:
        """Raises :class:`ValueError` if parts are missing and no id was chosen."""
        if self.missing and self.id is None:
            part, reason = next(iter(self.missing.items()))
            raise ValueError(
                f"out: whether the pacing rule {name!r} is the one that made the records cannot be told: {part}: {reason}. "
                "Name the rule with paced(..., id='...'), and choose another id whenever you change what it does"
            )


def identify(rule: object, id: str | None = None) -> Identity:
    """The identity of a rule: of a class, a function, or any object that can be called."""
    walk = _Walk(getattr(rule, "__module__", None))
    walk.value(getattr(rule, "__qualname__", type(rule).__qualname__), rule)
    try:
        source = inspect.getsource(rule)  # type: ignore[arg-type]
    except (OSError, TypeError):
        source = ""
    return Identity(source, id, walk.parts, walk.missing)


def _sha256(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def _is_installed(module: str | None) -> bool:
    """True for modules of Python and of installed packages; name and version identify their behaviour."""
    found = sys.modules.get((module or "").partition(".")[0])
    if found is None:
        return False
    path = getattr(found, "__file__", None)
    return path is None and module in sys.builtin_module_names or bool(path) and os.path.abspath(str(path)).startswith(_INSTALLED)


def _version(module: str) -> str:
    top = module.partition(".")[0]
    version = getattr(sys.modules.get(top), "__version__", None)
    return f"{module} {version}" if version else module


class _Walk:
    """Collects the parts of a rule."""

    def __init__(self, home: str | None) -> None:
        self._home = home
        self._seen: set[int] = set()
        #: Objects whose ids are in ``_seen``. They are kept, so that no other object gets their
        #: ids.
        self._kept: list[object] = []
        #: Ids of the containers that are being walked. They end the walk of a container that
        #: contains itself.
        self._open: set[int] = set()
        self.parts: dict[str, str] = {}
        self.missing: dict[str, str] = {}

    def value(self, name: str, value: object) -> None:
        """Adds the part ``name``, and the parts that it leads to."""
        try:
            text = self._text(name, value)
        except _Incomparable as reason:
            self.missing[name] = str(reason)
            return
        if text is not None:
            self.parts[name] = text if len(text) <= _LONGEST else f"sha256 {_sha256(text)}"

    def _text(self, name: str, value: object) -> str | None:
        """Text of a value. ``None`` for functions, classes and objects; their parts are added one by one."""
        plain = _plain(value)
        if plain is not None:
            return plain
        if isinstance(value, (tuple, list, set, frozenset, dict)):
            return self._container(name, value)
        module = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
        if isinstance(value, types.ModuleType):
            return _version(value.__name__)
        is_definition = isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType, types.BuiltinMethodType)) or hasattr(value, "__qualname__")
        if is_definition and _is_installed(module):
            return f"{_version(str(module))}: {getattr(value, '__qualname__', value)}"
        if id(value) in self._seen:
            return None
        self._seen.add(id(value))
        self._kept.append(value)
        if isinstance(value, type):
            self._class(value)
        elif isinstance(value, types.FunctionType):
            self._function(name, value)
        elif isinstance(value, types.MethodType):
            self.value(name, value.__func__)
            self.value(f"{name}.__self__", value.__self__)
        elif isinstance(value, functools.partial):
            self.value(name, value.func)
            self.value(f"{name}: arguments", [value.args, value.keywords])
        elif isinstance(value, (staticmethod, classmethod)):
            self.value(name, value.__func__)
        elif isinstance(value, property):
            for role, accessor in (("get", value.fget), ("set", value.fset)):
                if accessor is not None:
                    self.value(f"{name} ({role})", accessor)
        else:
            self._object(name, value)
        return None

    def _container(self, name: str, value: object) -> str:
        def text(place: object, item: object) -> str:
            found = self._text(f"{name}[{place}]", item)
            return found if found is not None else f"<{type(item).__qualname__}>"

        if id(value) in self._open:
            return "<itself>"
        self._open.add(id(value))
        try:
            if isinstance(value, dict):
                items = sorted(f"{text('key', key)}: {text(repr(key), item)}" for key, item in value.items())
                return "{" + ", ".join(items) + "}"
            assert isinstance(value, (tuple, list, set, frozenset))
            items = [text(place, item) for place, item in enumerate(value)]
            kind = type(value).__name__
            return f"{kind}({', '.join(sorted(items) if isinstance(value, (set, frozenset)) else items)})"
        finally:
            self._open.remove(id(value))

    def _object(self, name: str, value: object) -> None:
        """Adds the class and the attributes of an object."""
        slots = [slot for base in type(value).__mro__ for slot in _slots(base) if hasattr(value, slot)]
        kept = getattr(value, "__dict__", None)
        if kept is None and not slots:
            raise _Incomparable(f"an object of {type(value).__module__}.{type(value).__qualname__} has nothing to compare it by")
        if _is_installed(type(value).__module__):
            raise _Incomparable(f"an object of {type(value).__module__}.{type(value).__qualname__} may keep what it does not show")
        self.value(type(value).__qualname__, type(value))
        for attribute, item in sorted(dict(kept or {}).items()):
            self.value(f"{name}.{attribute}", item)
        for slot in slots:
            self.value(f"{name}.{slot}", getattr(value, slot))

    def _class(self, value: type) -> None:
        for base in value.__mro__:
            if base is not value and _is_installed(base.__module__):
                if base is not object:
                    self.parts[f"{value.__qualname__}: base"] = f"{_version(base.__module__)}: {base.__qualname__}"
                continue
            for attribute, item in sorted(vars(base).items()):
                if attribute not in _IGNORED and not isinstance(item, (types.MemberDescriptorType, types.GetSetDescriptorType)):
                    self.value(f"{base.__qualname__}.{attribute}", item)

    def _function(self, name: str, value: types.FunctionType) -> None:
        try:
            source = textwrap.dedent(inspect.getsource(value.__code__))
        except (OSError, TypeError):
            raise _Incomparable("its source is not known") from None
        self.parts[name] = f"source {_sha256(chr(10).join(line.rstrip() for line in source.strip().splitlines()))}"
        if value.__defaults__ or value.__kwdefaults__:
            self.value(f"{name}: defaults", [value.__defaults__, value.__kwdefaults__])
        for variable, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
            # The class in the cell of a method that uses super() is walked separately. An empty
            # cell has no value yet.
            if variable != "__class__":
                try:
                    self.value(variable, cell.cell_contents)
                except ValueError:
                    self.missing[variable] = "it has no value yet"
        for variable, item in sorted(_loaded(value.__code__, value.__globals__).items()):
            home = "" if value.__module__ == self._home else f"{value.__module__}."
            self.value(home + variable, item)


class _Incomparable(Exception):
    """No text describes the value completely."""


def _slots(base: type) -> Iterator[str]:
    slots = vars(base).get("__slots__", ())
    yield from (slots,) if isinstance(slots, str) else slots


def _plain(value: object) -> str | None:
    """Text of a value without parts; ``None`` for a value with parts."""
    if value is None or value is Ellipsis or isinstance(value, enum.Enum):
        return str(value)
    if type(value) in (bool, int, float, complex, str, bytes, bytearray, range):
        return repr(value)
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    if type(value).__module__ == "numpy" or hasattr(type(value), "__array_interface__"):
        interface: Any = value
        if hasattr(interface, "dtype") and hasattr(interface, "tobytes") and not interface.dtype.hasobject:
            shape = getattr(interface, "shape", ())
            return repr(interface.item()) if shape == () else f"{interface.dtype} {shape} {_sha256(interface.tobytes())}"
    if type(value).__module__ in ("fractions", "decimal", "datetime", "pathlib", "uuid", "ipaddress", "array") and hasattr(value, "__repr__"):
        return f"{kind}({value})"
    return None


def _loaded(code: types.CodeType, names: dict[str, Any]) -> dict[str, Any]:
    """Globals that a function, or a function inside it, loads. For a module, the attributes that the code names."""
    found: dict[str, Any] = {}
    instructions = [one for one in dis.get_instructions(code) if one.opname not in ("CACHE", "EXTENDED_ARG", "PUSH_NULL")]
    for place, instruction in enumerate(instructions):
        if instruction.opname not in ("LOAD_GLOBAL", "LOAD_NAME") or instruction.argval not in names:
            continue
        name, value = instruction.argval, names[instruction.argval]
        for following in instructions[place + 1 :]:
            is_attribute = following.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(value, types.ModuleType)
            if not is_attribute or not hasattr(value, following.argval) or _is_installed(value.__name__):
                break
            name, value = f"{name}.{following.argval}", getattr(value, following.argval)
        found[name] = value
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found.update(_loaded(constant, names))
    return found
