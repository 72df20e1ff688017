"""The drafters by the name a configuration gives them: one row each, and the entry points of other packages."""

from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING

from engine.extensions import load, offered

if TYPE_CHECKING:
    from engine.config import SpeculativeConfig
    from engine.draft.base import Drafter

GROUP = "triton_spec.drafters"
DRAFTERS = {  # name -> "module:class"; the class is made with the SpeculativeConfig
    "none": "engine.draft.none:NoDrafter",
    "ngram": "engine.draft.ngram:NgramDrafter",
}


def drafters() -> dict[str, EntryPoint]:
    """The drafters of this and other installed packages by name. Raises EngineError for a name with two meanings."""
    return offered(GROUP, DRAFTERS)


def make_drafter(config: "SpeculativeConfig") -> "Drafter":
    """The drafter that a configuration asks for. Raises EngineError if it cannot be loaded."""
    return load(drafters()[config.algorithm])(config)
