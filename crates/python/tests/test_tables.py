"""Results as Arrow: every cell is the field of its record."""

from __future__ import annotations

import pickle
import re
import subprocess
from pathlib import Path
from typing import Any

import meshpace
import pytest
from conftest import needs_program, slow_only

arrow = pytest.importorskip("pyarrow")


def scalars(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if not isinstance(value, (dict, list))}


def cells(table: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = arrow.table(table).to_pylist()
    return rows


def test_runs_are_the_fields_of_their_records(sweep: Path) -> None:
    results = meshpace.Scenario.load(sweep).sweep()
    rows = cells(results)
    assert len(rows) == len(results) == 24
    for row, record in zip(rows, results):
        del record["check"]
        expected = scalars(record) | record["point"]
        assert {name: value for name, value in row.items() if value is not None} == {
            name: value for name, value in expected.items() if value is not None
        }
    assert rows[0].keys() >= {"topology.hops", "flow.transport", "mac_drops", "collisions", "fingerprint"}


def test_flows_are_the_fields_of_theirs() -> None:
    scenario = meshpace.Scenario.build({"duration": "5 s", "topology": {"hops": 3}, "flow": [{"transport": "tcp-ap"}, {"from": 3, "to": 0, "transport": "newreno"}]})
    results = scenario.sweep(seeds=2)
    rows = cells(results.flows)
    expected = [(record, flow) for record in results for flow in record["flows"]]
    assert len(rows) == len(expected) == 4
    for row, (record, flow) in zip(rows, expected):
        pacing = {f"pacing.{name}": value for name, value in (flow["pacing"] or {}).items()}
        fields = scalars(flow) | pacing | {"scenario": record["scenario"], "seed": record["seed"], "flow": flow["id"]}
        del fields["id"]
        assert {name: value for name, value in row.items() if value is not None} == {
            name: value for name, value in fields.items() if value is not None
        }
    assert rows[0]["pacing.interval_s"] > 0 and rows[1]["pacing.interval_s"] is None


def test_flows_of_udp_have_the_share_that_is_lost() -> None:
    udp = {"transport": "udp", "traffic": "cbr", "rate": "2 Mbit/s"}
    scenario = meshpace.Scenario.build({"duration": "5 s", "topology": {"hops": 3}, "flow": [{"transport": "newreno"}, udp]})
    rows = cells(scenario.sweep(seeds=1).flows)
    assert rows[0]["loss_ratio"] is None and 0.5 < rows[1]["loss_ratio"] < 1.0


def test_the_types_are_those_of_the_fields(sweep: Path) -> None:
    schema = arrow.table(meshpace.Scenario.load(sweep).sweep(seed=2**64 - 1, seeds=1).runs).schema
    kinds = {name: str(schema.field(name).type) for name in schema.names}
    assert (kinds["seed"], kinds["frames"], kinds["jain"]) == ("uint64", "int64", "double")
    assert (kinds["topology.hops"], kinds["flow.transport"], kinds["fingerprint"]) == ("int64", "string", "string")


def test_a_table_is_streamed_in_batches(sweep: Path, tmp_path: Path) -> None:
    flow = {"start": "0 s", "start_jitter": "0 s"}
    results = meshpace.Scenario.build({"duration": "0.1 s", "topology": {"hops": 1}, "flow": [flow]}).sweep(seeds=2500)
    reader = arrow.RecordBatchReader.from_stream(results)
    seeds = [batch.column("seed").to_pylist() for batch in reader]
    assert len(seeds) > 1 and sum(seeds, []) == list(range(1, 2501))
    # Of a directory they come from the file.
    there = meshpace.Scenario.load(sweep).sweep(out=tmp_path / "out")
    assert cells(meshpace.open_records(tmp_path / "out").flows) == cells(there.flows)


def test_pandas_takes_them(sweep: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = arrow.table(meshpace.Scenario.load(sweep).sweep()).to_pandas()
    means = frame.groupby("flow.transport")["aggregate_goodput_bps"].mean()
    assert set(means.index) == {"newreno", "tcp-ap"} and isinstance(frame, pandas.DataFrame)


def test_rows_are_the_cells_of_the_table(sweep: Path) -> None:
    results = meshpace.Scenario.load(sweep).sweep()
    for table, count in ((results.runs, 24), (results.flows, 24)):
        assert list(table) == cells(table) and len(table) == count
        assert list(table)[0].keys() == set(table.columns)


def test_pandas_takes_a_table_as_it_is(sweep: Path) -> None:
    pandas = pytest.importorskip("pandas")
    flows = meshpace.Scenario.load(sweep).sweep().flows
    plain, typed = pandas.DataFrame(flows), flows.to_pandas()
    assert list(plain.columns) == list(typed.columns) == flows.columns and len(plain) == len(typed) == 24
    assert plain["goodput_bps"].sum() == pytest.approx(typed["goodput_bps"].sum()) and plain["goodput_bps"].sum() > 0
    assert str(typed["seed"].dtype) == "uint64"


def test_a_notebook_shows_the_first_rows_and_nothing_acts_in_them() -> None:
    scenario = meshpace.Scenario.build({"title": "<b>bold</b>", "duration": "2 s", "topology": {"hops": 1}, "flow": [{}]})
    shown = scenario.sweep(seeds=25).runs._repr_html_()
    assert shown.count("<tr>") == 21 and "and 5 more rows" in shown
    assert "<b>" not in shown and "&lt;b&gt;bold" in shown


def test_results_and_tables_can_be_pickled(sweep: Path, tmp_path: Path) -> None:
    meshpace.Scenario.load(sweep).sweep(out=tmp_path / "out")
    for results in (meshpace.Scenario.load(sweep).sweep(), meshpace.open_records(tmp_path / "out")):
        again = pickle.loads(pickle.dumps(results))
        assert list(again) == list(results) and (again.name, again.total, again.failed) == (results.name, results.total, results.failed)
        for table in (results.runs, results.flows):
            assert arrow.table(pickle.loads(pickle.dumps(table))).equals(arrow.table(table))


def test_a_plot_has_a_curve_for_each_transport(sweep: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    results = meshpace.Scenario.load(sweep).sweep()
    axes = results.plot()
    handles, labels = axes.get_legend_handles_labels()
    assert labels == ["flow.transport = newreno", "flow.transport = tcp-ap"]
    line = handles[0].lines[0]
    assert list(line.get_xdata()) == [1, 2, 3, 4]
    first = [record["aggregate_goodput_bps"] for record in results][:3]
    assert line.get_ydata()[0] == pytest.approx(sum(first) / 3)
    with pytest.raises(ValueError, match="nothing_of_that_name"):
        results.plot("nothing_of_that_name")


def test_a_plot_of_a_field_of_flows_has_a_curve_for_each_flow() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    flows = [{"name": "long", "transport": "tcp-ap"}, {"from": 1, "to": 2, "transport": "newreno"}]
    tree = {"duration": "5 s", "topology": {"hops": 3}, "flow": flows, "sweep": {"flow.0.max_window": [4, 8]}}
    results = meshpace.Scenario.build(tree).sweep(seeds=2)
    axes = results.plot("delay_p95_s")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["long", "flow 1"]
    rows = [row for row in results.flows if row["flow"] == 0 and row["flow.0.max_window"] == 8]
    mean = sum(row["delay_p95_s"] for row in rows) / len(rows)
    assert axes.containers[0].lines[0].get_ydata()[1] == pytest.approx(mean)
    for chosen in (1, "long", ["long"]):
        assert len(results.plot("retransmission_index", flow=chosen).containers) == 1
    # Only the paced flow has an interval.
    assert [text.get_text() for text in results.plot("pacing.interval_s").get_legend().get_texts()] == ["long"]
    assert results.flows.columns.index("name") == results.flows.columns.index("flow") + 1
    with pytest.raises(ValueError, match="of 'short'"):
        results.plot("delay_p95_s", flow="short")


def test_transports_and_keys_are_tables() -> None:
    transports = {row["name"]: row for row in meshpace.transports()}
    assert "AP05" in transports["tcp-ap"]["source"] and transports["quiet-train"]["description"]
    keys = list(meshpace.keys())
    names = [row["key"] for row in keys]
    assert len(names) == len(set(names)) > 100 and {"flow.name", "topology.motion"} <= set(names)
    levels = [row["level"] for row in keys]
    assert levels == sorted(levels), "keys for everybody first"
    (rate,) = [row for row in meshpace.keys("flow.name")]
    assert "printable" in rate["takes"]
    with pytest.raises(ValueError, match="flwo"):
        meshpace.keys("flwo")


def test_the_page_of_plots_is_the_command_s(sweep: Path, tmp_path: Path) -> None:
    meshpace.Scenario.load(sweep).sweep().report(tmp_path / "page.html")
    assert "<svg" in (tmp_path / "page.html").read_text()


def test_a_figure_for_a_paper_has_the_width_of_a_column_and_fonts_that_publishers_take(sweep: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    results = meshpace.Scenario.load(sweep).sweep()
    for width, points in (("column", 252.0), ("page", 515.52), (5.0, 360.0)):
        results.figure("goodput", tmp_path / "figure.pdf", width=width, labels={"topology.hops": "hops"})
        text = (tmp_path / "figure.pdf").read_bytes()
        assert f"/MediaBox [ 0 0 {points:g} ".encode() in text
        # Subsets of TrueType fonts: a prefix of six letters, and the font itself in the file.
        assert b"/Type3" not in text and b"/FontFile2" in text
        assert re.search(rb"/BaseFont /[A-Z]{6}\+", text)
    drawn = results.figure("goodput", tmp_path / "figure.svg", labels={"topology.hops": "hops", "newreno": "NewReno"})
    (axes,) = drawn.axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("hops", "goodput of all flows, kbit/s")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["NewReno", "tcp-ap"]
    assert all(text.get_fontsize() >= 7 for text in [*axes.get_xticklabels(), *axes.get_yticklabels(), *axes.get_legend().get_texts(), axes.xaxis.label, axes.yaxis.label])
    # No point is beside its place unless that is asked, and lines differ in more than their colour.
    lines = [container.lines[0] for container in axes.containers]
    assert all(list(line.get_xdata()) == [1, 2, 3, 4] for line in lines)
    assert len({(line.get_marker(), line.get_linestyle()) for line in lines}) == 2
    shifted = results.figure("goodput", tmp_path / "figure.svg", shifted=True).axes[0]
    assert list(shifted.containers[0].lines[0].get_xdata()) != [1, 2, 3, 4]
    for wrong in ({"quantity": "speed"}, {"width": "wide"}):
        with pytest.raises(ValueError, match="speed|wide"):
            results.figure(**{"quantity": "goodput", "file": tmp_path / "x.pdf", **wrong})


PLOT = {
    "plot.titles.goodput": "A chain",
    'plot.labels."topology.hops"': "hops",
    "plot.labels.goodput": "goodput (kbit/s)",
    "plot.labels.newreno": "NewReno",
    "plot.colours.newreno": "#0072b2",
    "plot.width": "page",
    "plot.height": 2.5,
}


def test_the_scenario_sets_titles_labels_sizes_and_colours(sweep: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    results = meshpace.Scenario.load(sweep, PLOT).sweep()
    drawn = results.figure("goodput", tmp_path / "figure.svg")
    (axes,) = drawn.axes
    assert list(drawn.get_size_inches()) == [7.16, 2.5]
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == ("A chain", "hops", "goodput (kbit/s)")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["NewReno", "tcp-ap"]
    assert axes.containers[0].lines[0].get_color() == "#0072b2"
    table = results.table("goodput", tmp_path / "table.tex")
    assert "hops & NewReno & tcp-ap" in table and "goodput (kbit/s)" in table and table.startswith("% A chain: ")
    # What a call gives comes before what the scenario says.
    (axes,) = results.figure("goodput", tmp_path / "figure.svg", width="column", labels={"newreno": "Reno"}).axes
    assert list(axes.figure.get_size_inches()) == [3.5, 2.5] and axes.get_legend().get_texts()[0].get_text() == "Reno"
    # The page has the same words, and its files of numbers those of the records.
    results.report(tmp_path / "page.html")
    svg = (tmp_path / "page-goodput.svg").read_text()
    assert 'width="7.16in"' in svg and ">NewReno<" in svg and "#0072b2" in svg and "newreno" in (tmp_path / "page-goodput.csv").read_text()
    for wrong in ({"plot.width": "wide"}, {"plot.width": 100}, {"plot.colours.newreno": "blue"}, {"plot.titles.speed": "x"}):
        with pytest.raises(meshpace.ScenarioError):
            meshpace.Scenario.load(sweep, wrong)


@needs_program("pdftotext", "poppler-utils")
@needs_program("pdffonts", "poppler-utils")
@slow_only("the letters and fonts of a PDF, as other programs find them")
def test_other_programs_find_the_letters_and_fonts_of_a_figure(sweep: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    results = meshpace.Scenario.load(sweep, PLOT).sweep()
    logarithmic = meshpace.Scenario.load(sweep, {**PLOT, "plot.logarithmic": True}).sweep()
    widths: list[tuple[str | float, Any]] = [("column", results), ("page", results), (2.0, results), ("column", logarithmic), (2.0, logarithmic)]
    for number, (width, drawn) in enumerate(widths):
        pdf = str(tmp_path / f"{number}.pdf")
        drawn.figure("goodput", pdf, width=width)
        fonts = [line.split() for line in subprocess.run(["pdffonts", pdf], check=True, capture_output=True, text=True).stdout.splitlines()[2:]]
        # name, type, encoding, embedded, subset, ...
        assert fonts and all("Type 3" not in " ".join(font) and font[-5:-3] == ["yes", "yes"] for font in fonts), fonts
        found = subprocess.run(["pdftotext", "-bbox", pdf, "-"], check=True, capture_output=True, text=True).stdout
        words = re.findall(r'xMin="([0-9.]+)" yMin="([0-9.]+)" xMax="([0-9.]+)" yMax="([0-9.]+)">([^<]*)<', found)
        text = " ".join(word for *_, word in words)
        assert all(label in text for label in ("A chain", "hops", "goodput (kbit/s)", "NewReno", "tcp-ap")), text
        # The box of a word is as high as the font from its ascent to its descent, 1.16 times the size for DejaVu Sans; that of the vertical label is as wide.
        for left, top, right, bottom, word in words:
            size = float(right) - float(left) if word in ("goodput", "(kbit/s)") else float(bottom) - float(top)
            assert size >= 7 * 1.16, (width, word, size)


@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize("width", [1.5, 3.5])
def test_no_text_of_a_figure_is_smaller_than_7_pt(sweep: Path, tmp_path: Path, width: float, logarithmic: bool) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    results = meshpace.Scenario.load(sweep, {"plot.logarithmic": logarithmic}).sweep()
    # A user's style writes powers of ten with exponents.
    with matplotlib.rc_context({"axes.formatter.use_mathtext": True}):
        drawn = results.figure("goodput", tmp_path / "figure.pdf", width=width)
    texts = [text for text in drawn.findobj(matplotlib.text.Text) if text.get_text()]
    assert len(texts) > 6 and all(text.get_fontsize() >= 7 for text in texts)
    # Mathematical text stands between dollar signs, and contains smaller letters.
    assert not any("$" in text.get_text() for text in texts), [text.get_text() for text in texts]


PARTS = """
title = "Two topologies"
[[part]]
file = "chains.toml"
[[part]]
name = "town"
file = "town.toml"
"""
TOWN = """
duration = "4 s"
topology.hops = 2
[[flow]]
[sweep]
"flow.transport" = ["newreno", "tcp-ap"]
seeds = 3
"""


def test_parts_without_the_key_of_the_axis_are_drawn_apart(sweep: Path, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    (tmp_path / "town.toml").write_text(TOWN)
    (tmp_path / "parts.toml").write_text(PARTS)
    results = meshpace.Scenario.load(tmp_path / "parts.toml").sweep()
    with pytest.raises(ValueError, match=r"choose one of \['chains', 'town'\]"):
        results.figure("goodput", tmp_path / "figure.svg")
    (chains,) = results.figure("goodput", tmp_path / "figure.svg", panel="chains").axes
    assert chains.get_xlabel() == "topology.hops" and all(len(bar.lines[0].get_xdata()) == 4 for bar in chains.containers)
    (town,) = results.figure("goodput", tmp_path / "figure.svg", panel="town").axes
    assert town.get_xlabel() == "" and len(town.containers) == 2
    # Plots of fields say the same in the title.
    axes = results.plot()
    assert axes.get_xlabel() == "topology.hops" and "Not drawn, because they have no topology.hops: part town." in axes.get_title()
    assert len(axes.containers) == 2
    with pytest.raises(ValueError, match="no record has a value of 'topology.rows'"):
        results.plot(x="topology.rows")


def test_figures_and_tables_have_the_numbers_of_the_page(sweep: Path, tmp_path: Path) -> None:
    results = meshpace.Scenario.load(sweep).sweep()
    results.report(tmp_path / "page.html")
    for quantity in ("goodput", "delay"):
        text = results.table(quantity, tmp_path / "table.csv")
        rows = [line.split(",") for line in text.splitlines()]
        page = [line.split(",") for line in (tmp_path / f"page-{quantity}.csv").read_text().splitlines()]
        assert rows[0] == page[0] and len(rows) == len(page) == 9
        for row, same in zip(rows[1:], page[1:]):
            assert row[0] == same[0]
            assert [float(cell) for cell in row[1:] if cell] == pytest.approx([float(cell) for cell in same[1:] if cell])
    latex = results.table("goodput", tmp_path / "table.tex", labels={"tcp-ap": "TCP_AP"})
    assert (tmp_path / "table.tex").read_text() == latex
    for part in (r"\toprule", r"\bottomrule", r"TCP\_AP", r"\sisetup{separate-uncertainty=true}", "topology.hops"):
        assert part in latex, part
    assert len(re.findall(r"\\num{[0-9.]+ \+- [0-9.]+}", latex)) == 8
    with pytest.raises(ValueError, match="neither in .tex"):
        results.table("goodput", tmp_path / "table.txt")


def test_what_a_starved_flow_has_not_is_drawn_as_none(tmp_path: Path) -> None:
    """Node 0 does not hear node 3, whose frames destroy all of its own at node 2: what delivers nothing has no delay."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    places = [["0 m", "0 m"], ["-200 m", "0 m"], ["240 m", "0 m"], ["600 m", "0 m"], ["800 m", "0 m"]]
    tree = {
        "duration": "8 s",
        "warmup": "3 s",
        "topology": {"kind": "nodes", "allow_partition": True, "positions": places},
        "flow": [{"from": 0, "to": 1}, {"from": 3, "to": 4, "transport": "newreno"}],
        "sweep": {"flow.0.to": [1, 2], "flow.0.transport": ["newreno", "tcp-ap"]},
    }
    results = meshpace.Scenario.build(tree).sweep(seeds=3)
    (axes,) = results.figure("delay", tmp_path / "delay.pdf").axes
    assert [text.get_text() for text in axes.texts] == ["none", "none"]
    assert r"none" in results.table("delay", tmp_path / "delay.tex")
    # The plot of a field says the same, and no interval goes below zero.
    axes = results.plot("delay_p95_s", x="flow.0.to", by="flow.0.transport")
    assert [text.get_text() for text in axes.texts] == ["none", "none"]
    for container in axes.containers:
        for segments in container.lines[2]:
            assert all(low >= 0.0 for segment in segments.get_segments() for _, low in segment)
    # Names are no numbers: nothing connects them.
    axes = results.where({"flow.0.to": 1}).plot("aggregate_goodput_bps", x="flow.0.transport")
    assert all(container.lines[0].get_linestyle() == "None" for container in axes.containers)


def test_names_on_the_axis_have_a_series_for_each_line(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib.figure")
    from meshpace import _paper

    means = {"newreno": [30.25, 12.5, 8.0], "tcp-ap": [40.5, 20.0, 16.0]}
    looks: dict[str, Any] = {"colour": None, "half_width": 0.25, "seeds": 3}
    rows = [{"line": line, "label": line.upper(), "x": x, "mean": mean, **looks} for line, values in means.items() for x, mean in enumerate(values)]
    titles: dict[str, Any] = {"title": "goodput", "heading": None, "x_title": "part", "x_label": "topology", "y_title": "goodput", "y_label": "goodput"}
    names = [["town", "town"], ["chain", "long chain"], ["grid", "grid"]]
    drawing = {**titles, "most": None, "logarithmic": False, "rows": rows, "x_names": names}
    axes = matplotlib.Figure().subplots()
    _paper._draw(axes, drawing, True)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["town", "long chain", "grid"]
    # The two series differ in marker, stand on both sides of each name, and connect no names.
    series = [container.lines[0] for container in axes.containers]
    assert [list(line.get_ydata()) for line in series] == list(means.values())
    assert len({line.get_marker() for line in series}) == 2 and {line.get_linestyle() for line in series} == {"None"}
    left, right = (line.get_xdata() for line in series)
    assert all(-0.5 < one - place < 0 < other - place < 0.5 for place, (one, other) in enumerate(zip(left, right)))
    table = _paper._latex(drawing).splitlines()
    assert r"topology & NEWRENO & TCP-AP \\" in table
    assert [line.split(" & ")[0] for line in table if "+-" in line and "&" in line] == ["town", "long chain", "grid"]
    assert r"long chain & \num{12.50 +- 0.25} & \num{20.00 +- 0.25} \\" in table
    assert _paper._csv(drawing).splitlines()[2] == "newreno,chain,12.5,0.25,3"
