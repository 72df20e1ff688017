"""The environment variables of `engine`, all read here; listed in docs/environment.md."""

import os
from pathlib import Path


def cache_directory() -> Path:
    """Where converted models are kept: `TRITON_SPEC_CACHE`, else `~/.cache/triton-spec`."""
    return Path(os.environ.get("TRITON_SPEC_CACHE") or "~/.cache/triton-spec").expanduser()
