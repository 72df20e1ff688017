"""The command line: `triton-spec generate` and `triton-spec bench`."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from dispatch.errors import DispatchError
from engine.cli import bench, generate
from engine.errors import EngineError


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the arguments, and exit with code 2."""
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand and return its exit code: 0, or 2 with one line on stderr for what the user can correct."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that lacks a character does not end an answer
    parser = Parser(prog="triton-spec", description="Language models, fast on CPUs, without changing a token.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    try:
        for name, module in (("generate", generate), ("bench", bench)):
            command = commands.add_parser(name, help=module.HELP, description=module.HELP)
            module.add_arguments(command)
            command.set_defaults(run=module.run)
        arguments = parser.parse_args(argv)
        return arguments.run(arguments)
    except (EngineError, DispatchError) as error:
        print(f"triton-spec: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of the output has gone, as `head` does
        _drop_output()
        return 1
    except OSError as error:  # models, caches and prompts have errors of their own; what is left is a full disk
        print(f"triton-spec: error: {error}; is there room for the output?", file=sys.stderr)
        _drop_output()
        return 2


def _drop_output() -> None:
    """Let what is still to be printed go nowhere, for the interpreter flushes it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
