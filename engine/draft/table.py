"""The drafters by the name a configuration gives them: one row each."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.config import SpeculativeConfig
    from engine.draft.base import Drafter

DRAFTERS = {  # name -> "module:class"; the class is made with the SpeculativeConfig
    "none": "engine.draft.none:NoDrafter",
    "ngram": "engine.draft.ngram:NgramDrafter",
}


def make_drafter(config: "SpeculativeConfig") -> "Drafter":
    """The drafter that a configuration asks for."""
    module, attribute = DRAFTERS[config.algorithm].split(":")
    return getattr(import_module(module), attribute)(config)
