"""Find ops and providers of every installed package, ours included, by entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from dispatch.errors import DiscoveryError, DispatchError, UnknownNameError
from dispatch.registry import Registry

GROUP = "triton_spec.providers"


def discover(group: str = GROUP) -> Registry:
    """A registry that every entry point of `group` has been called with.

    The order does not matter: a package may add providers of an op that another one defines, so those that find an op
    missing are called again after the others. Adding a thing twice changes nothing.

    Raises:
        DiscoveryError: no entry point is installed; or one cannot be loaded, is no function, or fails. The message
            names the package, the entry point and the cause.
    """
    waiting = sorted(entry_points(group=group), key=lambda point: (point.name, point.value))
    if not waiting:
        raise DiscoveryError(
            f"no installed package has an entry point of group {group!r}, so there are no ops; "
            "install this project into the environment: pip install -e ."
        )
    registry = Registry()
    while waiting:
        postponed = {point: error for point in waiting if (error := _register(point, registry))}
        if len(postponed) == len(waiting):  # nobody got further: the ops do not exist
            point, error = next(iter(postponed.items()))
            raise DiscoveryError(f"{_describe(point)}: {error}") from error
        waiting = list(postponed)
    return registry


def _register(point: EntryPoint, registry: Registry) -> UnknownNameError | None:
    """Call an entry point; the error if it needs an op that is not there (yet)."""
    try:
        register = point.load()
    except Exception as error:
        raise DiscoveryError(
            f"{_describe(point)} cannot be loaded: {type(error).__name__}: {error}; repair or uninstall the package"
        ) from error
    if not callable(register):
        raise DiscoveryError(f"{_describe(point)} is a {type(register).__name__}, not a function of a registry")
    try:
        register(registry)
    except UnknownNameError as error:
        return error
    except DispatchError as error:
        raise DiscoveryError(f"{_describe(point)}: {error}") from error
    except Exception as error:
        raise DiscoveryError(
            f"{_describe(point)} failed: {type(error).__name__}: {error}; repair or uninstall the package"
        ) from error
    return None


def _describe(point: EntryPoint) -> str:
    package = point.dist.name if point.dist else "an unnamed package"
    return f"entry point {point.name!r} ({point.value}) of package {package!r}"
