"""`python -m benchmarks backend`: measure the CPU backend."""

from __future__ import annotations

import argparse
import sys

from benchmarks import backend

COMMANDS = {"backend": backend}


def main() -> int:
    """Run the command that was named; its exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, command in COMMANDS.items():
        command.add_arguments(commands.add_parser(name, help=command.HELP, description=command.__doc__))
    arguments = parser.parse_args()
    return COMMANDS[arguments.command].run(arguments)


if __name__ == "__main__":
    sys.exit(main())
