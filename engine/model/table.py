"""The model families this engine runs: one row each."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from engine.errors import ModelError


@dataclass(frozen=True)
class Family:
    """A family of models: its Hugging Face and GGUF names and the class that runs it ("module:attribute")."""

    architecture: str
    gguf_architecture: str
    load: str

    def model_class(self) -> type[Any]:
        """Import the family's module and return its model class."""
        module, attribute = self.load.split(":")
        return getattr(import_module(module), attribute)


FAMILIES = (Family("LlamaForCausalLM", "llama", "engine.model.llama:Llama"),)


def family_of(architecture: str) -> Family:
    """The family of a Hugging Face architecture name. Raises ModelError listing the supported names."""
    for family in FAMILIES:
        if family.architecture == architecture:
            return family
    supported = ", ".join(family.architecture for family in FAMILIES)
    raise ModelError(f"architecture {architecture!r} is not supported; supported: {supported}")


def family_of_gguf(architecture: str) -> Family:
    """The family of a GGUF `general.architecture`. Raises ModelError listing the supported names."""
    for family in FAMILIES:
        if family.gguf_architecture == architecture:
            return family
    supported = ", ".join(family.gguf_architecture for family in FAMILIES)
    raise ModelError(f"GGUF architecture {architecture!r} is not supported; supported: {supported}")
