"""The environment variables of `engine`, all read here; listed in docs/environment.md."""

import os
from pathlib import Path

from engine.errors import EngineError


def cache_directory() -> Path:
    """Where converted models are kept: `TRITON_SPEC_CACHE`, else `~/.cache/triton-spec`.

    Raises EngineError if that begins in a home directory that nobody knows, as in a container without HOME.
    """
    place = os.environ.get("TRITON_SPEC_CACHE") or "~/.cache/triton-spec"
    try:
        return Path(place).expanduser()
    except RuntimeError as error:
        raise EngineError(f"{place}: {error} Set TRITON_SPEC_CACHE to a directory for converted models") from error
