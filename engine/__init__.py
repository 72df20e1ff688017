"""Answers of language models, by speculative decoding: `LLM` and its settings.

The names are imported on first use, so that a command line which only says what is wrong starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.config import SamplingParams, SpeculativeConfig
    from engine.errors import EngineError
    from engine.llm import LLM, Result

__all__ = ["LLM", "EngineError", "Result", "SamplingParams", "SpeculativeConfig"]

_MODULES = {
    "LLM": "engine.llm",
    "Result": "engine.llm",
    "SamplingParams": "engine.config",
    "SpeculativeConfig": "engine.config",
    "EngineError": "engine.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'engine' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
