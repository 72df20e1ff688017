"""From a model directory to a model ready to run."""

from pathlib import Path

import torch

from dispatch.plan import Plan
from engine.model.config import ModelConfig
from engine.model.llama import Llama
from engine.model.table import family_of
from engine.model.weights import load_weights
from engine.progress import StageProgress


def load_model(
    directory: Path,
    config: ModelConfig,
    plan: Plan,
    dtype: torch.dtype,
    context_length: int,
    progress: StageProgress | None = None,
) -> Llama:
    """Build the model of `config` over the ops of `plan` and fill its weights in `dtype` from the directory.

    `context_length` is the number of positions that may be used; `progress` gets bytes read. Raises ModelError.
    """
    model = family_of(config.architecture).model_class()(config, plan, dtype, context_length)
    load_weights(directory, model.destinations(), model.ignored_names(), progress)
    return model
