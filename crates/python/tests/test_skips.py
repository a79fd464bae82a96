"""Skipped tests are listed in the file that MESHPACE_SKIPS names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

#: A test for each way to skip.
WAYS = """
import pytest
from conftest import needs_program, slow_case, slow_only

@needs_program("no-such-program", "nothing")
def test_program(): ...

@needs_program("no-such-program", "nothing")
@slow_only("half an hour")
def test_slow(): ...

@pytest.mark.parametrize("value", [slow_case("a", "half an hour"), "b"])
def test_case(value): ...

def test_module():
    pytest.importorskip("no_such_module")

def test_rights():
    pytest.skip("rights: no root")
"""


def test_every_way_to_skip_is_listed_with_its_class(tmp_path: Path) -> None:
    (tmp_path / "test_ways.py").write_text(WAYS)
    (tmp_path / "test_file.py").write_text("import pytest\npytest.importorskip('no_such_module')\ndef test(): ...\n")
    (tmp_path / "conftest.py").write_text((Path(__file__).parent / "conftest.py").read_text())
    lines: dict[str, list[str]] = {}
    for slow in ("", "1"):
        skips = tmp_path / f"skips{slow}"
        environment = {**os.environ, "MESHPACE_SKIPS": str(skips), "MESHPACE_SLOW": slow}
        again = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
        done = subprocess.run(again, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
        lines[slow] = sorted(line.removeprefix("SKIPPED ") for line in skips.read_text().splitlines())
    missing = "no-such-program is not installed (apt-get install nothing)"
    module = "could not import 'no_such_module': No module named 'no_such_module'"
    here = "crates/python/tests/"
    assert lines["1"] == sorted([
        f"rights: {here}test_ways.py: test_rights: no root",
        f"tools: {here}test_file.py: all tests of the file: {module}",
        f"tools: {here}test_ways.py: test_module: {module}",
        f"tools: {here}test_ways.py: test_program: {missing}",
        f"tools: {here}test_ways.py: test_slow: {missing}",
    ])
    # A slow test is skipped as slow, whatever else it lacks.
    slow = [f"slow: {here}test_ways.py: {test}: half an hour" for test in ("test_case[a]", "test_slow")]
    assert lines[""] == sorted([line for line in lines["1"] if "test_slow" not in line] + slow)
