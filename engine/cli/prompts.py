"""Prompts of the command line and of a file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.errors import PromptError


def read_prompts(arguments: Sequence[str], file: str | None) -> list[str]:
    """The prompts given as arguments, then those of the file. Raises PromptError if there are none, or empty ones."""
    if not all(arguments):
        raise PromptError(f"prompt {list(arguments).index('') + 1} of the command line is empty")
    prompts = [*arguments, *(read_prompts_file(Path(file)) if file is not None else [])]
    if not prompts:
        raise PromptError("there is no prompt; pass PROMPT or --prompts-file F.json")
    return prompts


def read_prompts_file(path: Path) -> list[str]:
    """The prompts of a JSON list of texts or of objects with a "prompt". Raises PromptError naming the file."""
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise PromptError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(entries, list) or not entries:
        raise PromptError(f"{path}: must hold a JSON list of prompts with at least one entry")
    return [_text(path, index, entry) for index, entry in enumerate(entries)]


def _text(path: Path, index: int, entry: Any) -> str:
    text = entry.get("prompt") if isinstance(entry, dict) else entry
    if not isinstance(text, str):
        raise PromptError(f'{path}: entry {index} is neither a text nor an object with a text as its "prompt"')
    if not text:
        raise PromptError(f"{path}: entry {index} is an empty prompt")
    return text
