"""The command that wheels of a release have inside."""

import pathlib
import subprocess
import sys

import meshpace


def test_the_command_runs_or_says_how_to_get_it() -> None:
    inside = pathlib.Path(meshpace.__file__).parent / "bin" / "meshpace"
    done = subprocess.run([sys.executable, "-m", "meshpace", "--version"], capture_output=True, text=True, check=False)
    if inside.exists():
        assert (done.returncode, done.stdout) == (0, f"meshpace {meshpace.__version__}\n")
    else:
        assert done.returncode == 1
        assert "cargo install --path crates/cli" in done.stderr


def test_the_command_is_installed_by_its_name() -> None:
    script = pathlib.Path(sys.executable).parent / "meshpace"
    by_name = subprocess.run([script, "--version"], capture_output=True, text=True, check=False)
    by_module = subprocess.run([sys.executable, "-m", "meshpace", "--version"], capture_output=True, text=True, check=False)
    assert (by_name.returncode, by_name.stdout, by_name.stderr) == (
        by_module.returncode,
        by_module.stdout,
        by_module.stderr,
    )
