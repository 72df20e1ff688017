"""The model families this engine runs: one row each, and the entry points of other packages."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from engine.errors import EngineError, ModelError
from engine.extensions import load, offered


@dataclass(frozen=True)
class Family:
    """A family of models: its Hugging Face and GGUF names and the class that runs it ("module:attribute").

    gguf_architecture: None where GGUF files of the family are not read. The class has the methods of `llama.Llama`.
    """

    architecture: str
    gguf_architecture: str | None
    load: str

    def model_class(self) -> type[Any]:
        """Import the family's module and return its model class."""
        module, attribute = self.load.split(":")
        return getattr(import_module(module), attribute)


GROUP = "triton_spec.models"  # an entry point gives a Family
FAMILIES = (Family("LlamaForCausalLM", "llama", "engine.model.llama:Llama"),)


def families() -> Iterator[Family]:
    """The families of this package, then those of others, imported one by one.

    Raises EngineError for an entry point that cannot be loaded or gives no family.
    """
    yield from FAMILIES
    for point in offered(GROUP, {}).values():
        family = load(point)
        if not isinstance(family, Family):
            raise EngineError(f"entry point {point.name!r} of group {GROUP}: {point.value} is no Family")
        yield family


def family_of(architecture: str) -> Family:
    """The family of a Hugging Face architecture name. Raises ModelError listing the supported names."""
    for family in families():
        if family.architecture == architecture:
            return family
    supported = _listed(family.architecture for family in families())
    raise ModelError(f"architecture {architecture!r} is not supported; supported: {supported}")


def family_of_gguf(architecture: str) -> Family:
    """The family of a GGUF `general.architecture`. Raises ModelError listing the supported names."""
    for family in families():
        if family.gguf_architecture == architecture:
            return family
    supported = _listed(family.gguf_architecture for family in families())
    raise ModelError(f"GGUF architecture {architecture!r} is not supported; supported: {supported}")


def _listed(names: Iterable[str | None]) -> str:
    return ", ".join(dict.fromkeys(name for name in names if name is not None))
