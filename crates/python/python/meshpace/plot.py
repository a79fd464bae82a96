"""Plots with matplotlib."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any, Callable, Sequence

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ._results import Results

#: Two-sided quantiles of Student's t for 95 %, by degrees of freedom. Beyond the table, the
#: quantile of the normal distribution, 1.960, is used with a correction for the degrees of freedom.
_T = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086]


def _half_width(values: list[float]) -> float:
    """Half width of the 95 % interval of the mean; 0 for fewer than three values, from which the interval would have no meaning."""
    if len(values) < 3:
        return 0.0
    degrees = len(values) - 1
    t = _T[degrees - 1] if degrees <= len(_T) else 1.960 + 2.4 / degrees
    return t * statistics.stdev(values) / math.sqrt(len(values))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _field(fields: dict[str, Any], name: str) -> tuple[bool, Any]:
    """Returns whether a run or a flow has a field, and the field's value. ``pacing.interval_s`` is in the table ``pacing``."""
    table, _, inner = name.rpartition(".")
    if table:
        found = fields.get(table)
        return table in fields, found.get(inner) if isinstance(found, dict) else None
    return name in fields, fields.get(name)


def _is_chosen(number: int, flow: dict[str, Any], chosen: int | str | Sequence[int | str] | None) -> bool:
    if chosen is None:
        return True
    wanted = [chosen] if isinstance(chosen, (int, str)) else list(chosen)
    return number in wanted or flow.get("name") in wanted


def _values(record: dict[str, Any], y: str, chosen: int | str | Sequence[int | str] | None) -> list[tuple[str, Any]]:
    """Values of a record, each with the label of its curve.

    They are values of flows if ``y`` is a field of flows only, or if flows are selected. The value is infinite if a starved flow has none.
    """
    there, value = _field(record, y)
    if there and chosen is None:
        return [("", value)]
    flows: list[dict[str, Any]] = record["flows"]
    found = []
    for number, flow in enumerate(flows):
        if not _is_chosen(number, flow, chosen):
            continue
        there, value = _field(flow, y)
        if there:
            # A value that a starved flow does not have is worse than any number, as on the page of
            # the report.
            if value is None and flow.get("starved") and "." not in y:
                value = math.inf
            found.append((flow.get("name") or f"flow {number}" if len(flows) > 1 or "name" in flow else "", value))
    return found


def _draw(ax: Axes, label: str, curve: dict[Any, list[float]], height: float) -> None:
    """Draws a curve over numbers, or separate points over names. The word "none" at ``height`` marks a place where a run has no number."""
    is_along_numbers = all(_is_number(at) for at in curve)
    places = sorted(curve) if is_along_numbers else list(curve)
    is_none = [any(math.isinf(value) for value in curve[at]) for at in places]
    means = [math.nan if none else statistics.fmean(curve[at]) for at, none in zip(places, is_none)]
    halves = [0.0 if none else _half_width(curve[at]) for at, none in zip(places, is_none)]
    # If no value is below zero, no interval extends below zero.
    lowest = min((value for values in curve.values() for value in values), default=0.0)
    below = [half if lowest < 0 or math.isnan(mean) else min(half, mean) for mean, half in zip(means, halves)]
    ax.errorbar(places, means, yerr=[below, halves], label=label or None, marker="o", capsize=3, linestyle="-" if is_along_numbers else "")
    for at, none in zip(places, is_none):
        if none:
            ax.text(at, height, "none", ha="center", va="top", fontsize="small", transform=ax.get_xaxis_transform())


def _default_axis(points: list[dict[str, Any]]) -> str:
    """The first key of a point with a number, else the first key, else the seed."""
    keys = [(key, value) for point in points for key, value in point.items()]
    return next((key for key, value in keys if _is_number(value)), keys[0][0] if keys else "seed")


def _left_out(points: list[dict[str, Any]], x: str) -> list[str]:
    """A sentence about the points that have no value of ``x``; none if there are no such points."""
    if not points:
        return []
    parts = list(dict.fromkeys(str(point["part"]) for point in points if "part" in point))
    who = f"{'part' if len(parts) == 1 else 'parts'} {', '.join(parts)}" if parts else f"{len(points)} runs"
    return [f"Not drawn, because they have no {x}: {who}."]


def plot(
    results: Results,
    *,
    y: str,
    x: str | None = None,
    by: str | None = None,
    where: Callable[[dict[str, Any]], bool] | None = None,
    flow: int | str | Sequence[int | str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """See :meth:`meshpace.Results.plot`."""
    try:
        import matplotlib.pyplot as pyplot
    except ImportError as error:
        raise ImportError("plots are drawn by matplotlib: pip install 'meshpace[plot]'") from error

    curves: dict[str, dict[Any, list[float]]] = {}
    found = False
    chosen = [record for record in results if where is None or where(record)]
    if x is None:
        x = _default_axis([record["point"] for record in chosen])
    without = [record["point"] for record in chosen if x != "seed" and x not in record["point"]]
    if len(without) == len(chosen) > 0:
        raise ValueError(f"x: no record has a value of {x!r}")
    for record in chosen:
        point: dict[str, Any] = record["point"]
        if x != "seed" and x not in point:
            continue
        at = record["seed"] if x == "seed" else point[x]
        others = [f"{key} = {other}" for key, other in point.items() if key != x and (by is None or key == by)]
        for name, value in _values(record, y, flow):
            found = True
            if _is_number(value) and not math.isnan(value):
                curve = curves.setdefault(", ".join([*others, name] if name else others), {})
                curve.setdefault(at, []).append(float(value))
    if not found and len(results) > 0:
        flows = "" if flow is None else f" of {flow!r}"
        raise ValueError(f"y: neither a run nor a flow{flows} has a field {y!r}: results.runs.columns and results.flows.columns list them")
    if ax is None:
        _, ax = pyplot.subplots()
    for number, (label, curve) in enumerate(curves.items()):
        _draw(ax, label, curve, 0.97 - 0.06 * number)
    ax.set_xlabel(x or "")
    ax.set_ylabel(y)
    starved = results.starved[:1]
    notes = [*starved, *_left_out(without, x)]
    ax.set_title("\n".join([results.name, *notes]), fontsize="small" if notes else None)
    if any(curves):
        ax.legend()
    return ax
