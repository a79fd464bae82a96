"""The command that ``meshpace`` and ``python -m meshpace`` run."""

import os
import pathlib
import sys


def main() -> None:
    """Replaces this process by the command that is in the wheel."""
    command = pathlib.Path(__file__).parent / "bin" / "meshpace"
    if not command.exists():
        sys.exit(
            "meshpace: this package was built from its sources and has no command inside, released wheels have;\n"
            "in a copy of the sources `cargo install --path crates/cli` builds it"
        )
    os.execv(command, [str(command), *sys.argv[1:]])


if __name__ == "__main__":
    main()
