"""What other installed packages add to this one's tables, by entry points."""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from engine.errors import EngineError


def offered(group: str, built_in: Mapping[str, str]) -> dict[str, EntryPoint]:
    """The things of a table by name: its own, name -> "module:attribute", then those of the group's entry points.

    Nothing is imported. Raises EngineError for a name with two meanings.
    """
    table = {name: EntryPoint(name, value, group) for name, value in built_in.items()}
    for point in sorted(entry_points(group=group), key=lambda point: (point.name, point.value)):
        known = table.setdefault(point.name, point)
        if known.value != point.value:
            raise EngineError(
                f"two things of group {group} are named {point.name!r}: {known.value} and {point.value} "
                f"({_package(point)}); rename one or uninstall its package"
            )
    return table


def load(point: EntryPoint) -> Any:
    """Import what an entry point names. Raises EngineError naming it, its package and the cause."""
    try:
        return point.load()
    except Exception as error:  # whatever the code of the other package raises
        raise EngineError(
            f"{point.name!r} cannot be loaded from {point.value} ({_package(point)}): {type(error).__name__}: {error}; "
            "repair or uninstall the package"
        ) from error


def _package(point: EntryPoint) -> str:
    return f"package {point.dist.name}" if point.dist else "of this project"
