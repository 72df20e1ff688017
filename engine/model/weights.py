"""Read a model's weights from safetensors files: everything is checked before the first tensor is copied."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open

from engine.errors import ModelError
from engine.model.config import read_json_object
from engine.progress import StageProgress

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
FLOAT_BYTES = {"F32": 4, "F16": 2, "BF16": 2}  # the stored dtypes that are read, bytes per element


@dataclass(frozen=True)
class StoredTensor:
    """Where a tensor lies and what it is, from its file's header."""

    file: Path
    shape: tuple[int, ...]
    dtype: str

    @property
    def size(self) -> int:
        """Bytes in the file."""
        elements = 1
        for extent in self.shape:
            elements *= extent
        return elements * FLOAT_BYTES[self.dtype]


def load_weights(
    directory: Path,
    destinations: Mapping[str, torch.Tensor],
    ignored: frozenset[str] = frozenset(),
    progress: StageProgress | None = None,
) -> None:
    """Copy every stored tensor into the destination of its name, converting to the destination's dtype.

    `destinations` maps each name the model needs to a tensor (or view) of the shape stored in the file; names in
    `ignored` may be stored as well and are not read. `progress` is called with bytes of the files, in all the size of
    the destinations' stored form. Raises ModelError naming the file if a file is missing or damaged, and listing the
    tensors that are missing, unused, or of another shape or dtype; nothing has been copied then.
    """
    stored = read_headers(directory)
    _check_agreement(directory, stored, destinations, ignored)
    total = sum(stored[name].size for name in destinations)
    done = 0
    for file in sorted({stored[name].file for name in destinations}):
        with _opened(file) as tensors:
            for name in (name for name in destinations if stored[name].file == file):
                destinations[name].copy_(tensors.get_tensor(name))
                done += stored[name].size
                if progress is not None:
                    progress(done, total)


def read_headers(directory: Path) -> dict[str, StoredTensor]:
    """The tensors of a model directory by name: of model.safetensors if there is one (as in transformers),
    else of exactly the files that the index names.

    Raises ModelError if a file is absent, of another length than its header says, or lacks a tensor of the index.
    """
    single, index = directory / SINGLE_FILE, directory / INDEX_FILE
    if single.exists() or not index.exists():
        return _read_header(single)
    places = read_json_object(index).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise ModelError(f"{index}: weight_map must be an object from tensor names to file names")
    headers = {}
    for name in sorted({str(name) for name in places.values()}):
        if Path(name).name != name:
            raise ModelError(f"{index}: {name!r} is not the name of a file in the same directory")
        headers[name] = _read_header(directory / name)
    stored = {}
    for tensor, name in ((tensor, str(name)) for tensor, name in places.items()):
        if tensor not in headers[name]:
            raise ModelError(f"{directory / name}: lacks the tensor {tensor}, which {INDEX_FILE} puts there")
        stored[tensor] = headers[name][tensor]
    return stored


def _read_header(file: Path) -> dict[str, StoredTensor]:
    if not file.exists():
        pickles = sorted(path.name for path in file.parent.glob("*.bin"))
        hint = f"; {pickles[0]} is not read, convert it to safetensors" if pickles else ""
        raise ModelError(f"{file}: the weight file is missing{hint}")
    with _opened(file) as tensors:
        slices = {name: tensors.get_slice(name) for name in tensors.keys()}  # noqa: SIM118 - not a mapping
        return {
            name: StoredTensor(file, tuple(part.get_shape()), str(part.get_dtype())) for name, part in slices.items()
        }


def _opened(file: Path) -> Any:
    """An open safetensors file, a context manager; the library compares the header with the file's length."""
    try:
        return safe_open(file, framework="pt")
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{file}: the file is damaged, cut short, or no safetensors file ({error})") from error


def _check_agreement(
    directory: Path,
    stored: Mapping[str, StoredTensor],
    destinations: Mapping[str, torch.Tensor],
    ignored: frozenset[str],
) -> None:
    faults = [f"missing: {name}" for name in destinations if name not in stored]
    faults += [f"unused: {name}" for name in sorted(stored) if name not in destinations and name not in ignored]
    for name in (name for name in destinations if name in stored):
        tensor, wanted = stored[name], tuple(destinations[name].shape)
        if tensor.dtype not in FLOAT_BYTES:
            faults.append(f"dtype {tensor.dtype} (read are {', '.join(FLOAT_BYTES)}): {name}")
        if tensor.shape != wanted:
            faults.append(f"shape {list(tensor.shape)} where config.json gives {list(wanted)}: {name}")
    if faults:
        shown = faults[:20] + ([f"and {len(faults) - 20} more"] if len(faults) > 20 else [])
        raise ModelError(f"{directory}: the weights do not fit the configuration:\n  " + "\n  ".join(shown))
