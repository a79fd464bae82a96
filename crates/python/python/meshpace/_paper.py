"""Figures and tables for papers: the plots of a report's page with matplotlib, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from typing import TYPE_CHECKING, Any, Sequence, Union

from . import _native

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ._results import Results

#: Widths of a column and of a page with two columns (IEEE, ACM), inches.
WIDTHS = {"column": 3.5, "page": 7.16}
#: Style of figures: fonts are embedded as subsets of TrueType, which publishers require, and no
#: text is smaller than 7 pt.
_STYLE: Any = {
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    # Mathematical text sets exponents smaller than the rest.
    "axes.formatter.use_mathtext": False,
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.0,
    "lines.markersize": 4,
}
#: Colours that people with any kind of colour vision can distinguish (Okabe and Ito, "Color
#: Universal Design", 2008). In grey, markers and dashes distinguish the lines.
_COLOURS = ["#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]
_MARKERS = ["o", "s", "^", "D", "v", "P", "X", "<", ">"]
_DASHES: list[Any] = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1))]


def _drawing(results: Results, quantity: str, x: str | None, lines: Sequence[str] | None, panel: str | None) -> dict[str, Any]:
    """Numbers of a quantity's plot on the page; ``panel`` selects one of several panels."""
    chosen = None if lines is None else list(lines)
    drawings = json.loads(_native.drawings(results._records, quantity, results._text, results._sets, x, chosen))
    if not drawings:
        raise ValueError(f"{quantity}: no run has it")
    panels = [drawing["panel"] for drawing in drawings]
    if panel is None and len(drawings) > 1 or panel is not None and panel not in panels:
        raise ValueError(f"panel: choose one of {panels}")
    found: dict[str, Any] = drawings[0 if panel is None else panels.index(panel)]
    return found


def _lines(drawing: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The points of each line, along the axis."""
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(drawing["rows"], key=lambda row: float(row["x"])):
        lines.setdefault(row["line"], []).append(row)
    # The lines are in the order of the records, not of their values on the axis.
    order = list(dict.fromkeys(row["line"] for row in drawing["rows"]))
    return {line: lines[line] for line in order}


def _whiskers(rows: list[dict[str, Any]], most: float | None, logarithmic: bool) -> list[list[float]]:
    """Lengths of the intervals below and above the means, cut off at the bounds of possible values."""
    below, above = [], []
    for row in rows:
        mean, half = row["mean"], row["half_width"] or 0.0
        below.append(half if mean is None or mean < 0 else min(half, mean * (0.999 if logarithmic else 1.0)))
        above.append(half if mean is None or most is None else max(0.0, min(half, most - mean)))
    return [below, above]


def _labelled(drawing: dict[str, Any], labels: dict[str, str] | None) -> dict[str, Any]:
    """The drawing with these labels, instead of those of ``[plot]``."""
    given = labels or {}
    rows = [{**row, "label": given.get(row["line"], row["label"])} for row in drawing["rows"]]
    x_label, y_label = drawing["x_label"], given.get(drawing["y_title"], drawing["y_label"])
    if x_label is not None:
        x_label = given.get(drawing["x_title"], x_label)
    x_names = [[name, given.get(name, label)] for name, label in drawing["x_names"]]
    return {**drawing, "rows": rows, "x_label": x_label, "y_label": y_label, "x_names": x_names}


def _make_logarithmic(axes: Axes) -> None:
    """Makes the vertical axis logarithmic. Its numbers are written without exponents above the line, which would be smaller than 7 pt."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def _draw(axes: Axes, drawing: dict[str, Any], shifted: bool) -> None:
    lines = _lines(drawing)
    has_axis = drawing["x_title"] is not None
    xs = sorted({row["x"] for row in drawing["rows"]})
    names = [label for _, label in drawing["x_names"]]
    gap = min((right - left for left, right in zip(xs, xs[1:])), default=1.0)
    for number, rows in enumerate(lines.values()):
        # Names are one unit apart; their points share the middle 0.4 of it.
        step = min(0.12, 0.4 / len(lines)) if names else 0.04 * gap
        aside = step * (number - (len(lines) - 1) / 2) if shifted and has_axis else 0.0
        # NaN interrupts a line where a point has no number.
        means = [math.nan if row["mean"] is None else row["mean"] for row in rows]
        style: dict[str, Any] = {"color": rows[0]["colour"] or _COLOURS[number % len(_COLOURS)], "marker": _MARKERS[number % len(_MARKERS)]}
        dashes = _DASHES[number % len(_DASHES)] if has_axis and not names else ""
        whiskers = _whiskers(rows, drawing["most"], drawing["logarithmic"])
        name = rows[0]["label"] or None
        axes.errorbar([row["x"] + aside for row in rows], means, yerr=whiskers, label=name, capsize=2, elinewidth=0.7, linestyle=dashes, **style)
        for row in rows:
            if row["mean"] is None:
                place = 0.96 - 0.09 * (number if has_axis else 0)
                axes.text(row["x"], place, "none", color=style["color"], fontsize=7, ha="center", va="top", transform=axes.get_xaxis_transform())
    if drawing["logarithmic"]:
        _make_logarithmic(axes)
    elif all((row["mean"] or 0.0) >= 0.0 for row in drawing["rows"]):
        axes.set_ylim(bottom=0.0)
    if has_axis:
        axes.set_xlabel(drawing["x_label"])
        if names:
            axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
            axes.set_xlim(-0.5, len(names) - 0.5)
        elif len(xs) <= 12:
            axes.set_xticks(xs)
    else:
        names = [rows[0]["label"] for rows in lines.values()]
        axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_ylabel(drawing["y_label"])
    if drawing["heading"] is not None:
        axes.set_title(drawing["heading"])
    if has_axis and len(lines) > 1:
        axes.legend(frameon=False)


def figure(
    results: Results,
    quantity: str,
    file: str | os.PathLike[str],
    *,
    x: str | None,
    lines: Sequence[str] | None,
    panel: str | None,
    width: Union[str, float, None],
    height: float | None,
    labels: dict[str, str] | None,
    shifted: bool | None,
) -> Figure:
    """See :meth:`meshpace.Results.figure`."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("figures are drawn by matplotlib: pip install 'meshpace[plot]'") from error
    if isinstance(width, str) and width not in WIDTHS:
        raise ValueError(f"width: {width!r} is neither inches nor one of {', '.join(WIDTHS)}")
    drawing = _labelled(_drawing(results, quantity, x, lines, panel), labels)
    width = width or drawing["width"] or "column"
    inches = WIDTHS[width] if isinstance(width, str) else float(width)
    height = height or drawing["height"] or 0.62 * min(inches, 4.0)
    with matplotlib.rc_context(_STYLE):
        drawn = Figure(figsize=(inches, height), layout="constrained")
        _draw(drawn.subplots(), drawing, drawing["shifted"] if shifted is None else shifted)
        # Without the creation date, equal figures are equal files.
        drawn.savefig(file, metadata={"CreationDate": None} if os.fspath(file).endswith(".pdf") else None)
    return drawn


def _rounded(row: dict[str, Any]) -> tuple[str, str]:
    """A mean and its half width, rounded to two significant digits of the half width."""
    mean, half = row["mean"], row["half_width"]
    if half is None or half <= 0.0:
        return f"{mean:.4g}", ""
    digits = max(0, 1 - math.floor(math.log10(half)))
    return f"{mean:.{digits}f}", f"{half:.{digits}f}"


_ESCAPED = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", **{letter: "\\" + letter for letter in "&%$#_{}"}}


def _escaped(text: str) -> str:
    return "".join(_ESCAPED.get(letter, letter) for letter in text)


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "--"
    if row["mean"] is None:
        return "none"
    mean, half = _rounded(row)
    return rf"\num{{{mean} +- {half}}}" if half else rf"\num{{{mean}}}"


def _latex(drawing: dict[str, Any]) -> str:
    lines = _lines(drawing)
    names = [_escaped(rows[0]["label"]) for rows in lines.values()]
    unit = _escaped(drawing["y_label"])
    if drawing["x_title"] is None:
        heads = ["", unit]
        body = [[name, _cell(rows[0])] for name, rows in zip(names, lines.values())]
    else:
        heads = [_escaped(drawing["x_label"]), *(name or unit for name in names)]
        at = [{row["x"]: row for row in rows} for rows in lines.values()]
        names_of_x = [_escaped(label) for _, label in drawing["x_names"]]
        body = [[names_of_x[int(x)] if names_of_x else rf"\num{{{x:g}}}", *(_cell(rows.get(x)) for rows in at)] for x in sorted({row["x"] for row in drawing["rows"]})]
    title = drawing["title"] if drawing["heading"] is None else f"{drawing['heading']}: {drawing['title']}"
    text = f"% {title}; +-: half the width of the 95 % confidence interval. Wants \\usepackage{{booktabs,siunitx}}.\n"
    text += f"{{\\sisetup{{separate-uncertainty=true}}%\n\\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}\n\\toprule\n"
    if drawing["x_title"] is not None and len(lines) > 1:
        text += f" & \\multicolumn{{{len(lines)}}}{{c}}{{{unit}}} \\\\\n\\cmidrule(l){{2-{len(heads)}}}\n"
    rows = [" & ".join(cells) + " \\\\\n" for cells in body]
    return text + " & ".join(heads) + " \\\\\n\\midrule\n" + "".join(rows) + "\\bottomrule\n\\end{tabular}}\n"


def _csv(drawing: dict[str, Any]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["line", drawing["x_title"] or "point", "mean", "half_width", "seeds"])
    for row in drawing["rows"]:
        x = drawing["x_names"][int(row["x"])][0] if drawing["x_names"] else row["x"]
        writer.writerow([row["line"], x, row["mean"], row["half_width"], row["seeds"]])
    return text.getvalue()


def table(
    results: Results,
    quantity: str,
    file: str | os.PathLike[str],
    *,
    x: str | None,
    lines: Sequence[str] | None,
    panel: str | None,
    labels: dict[str, str] | None,
) -> str:
    """See :meth:`meshpace.Results.table`."""
    name = os.fspath(file)
    if not name.endswith((".tex", ".csv")):
        raise ValueError(f"file: {name!r} ends neither in .tex nor in .csv")
    drawing = _drawing(results, quantity, x, lines, panel)
    text = _latex(_labelled(drawing, labels)) if name.endswith(".tex") else _csv(drawing)
    with open(file, "w", encoding="utf-8", newline="") as out:
        out.write(text)
    return text
