"""Put an engine together: configuration -> target -> plan -> model, KV pool, drafter. Nothing else composes."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from dispatch.discovery import discover
from dispatch.plan import Plan
from dispatch.policy import read_choices
from dispatch.probe import probe_target
from dispatch.resolve import resolve
from dispatch.target import Target
from engine.config import EngineConfig
from engine.draft.table import make_drafter
from engine.errors import EngineError
from engine.kv.pool import KVPool
from engine.kv.slots import SlotAllocator
from engine.kv.table import RequestTable
from engine.model.config import ModelConfig, read_config
from engine.model.load import load_model
from engine.model.locate import model_directory
from engine.model.runner import ModelRunner
from engine.progress import Progress, of_stage
from engine.prompt import load_tokenizer
from engine.record import RecordedRunner, can_be_recorded
from engine.step import Decoder
from engine.warm import WARM_LAYERS, warm_up

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

RUNNING_REQUESTS = 1  # answers decoded at once


@dataclass(frozen=True)
class Engine:
    """The parts of an engine, ready to decode.

    directory: the model's Hugging Face files, converted ones for a GGUF file. slots: of the KV pool, all free while
    no request is open. weight_bytes: weights read for one token.
    """

    config: EngineConfig
    directory: Path
    model_config: ModelConfig
    tokenizer: "PreTrainedTokenizerBase"
    target: Target
    plan: Plan
    slots: SlotAllocator
    decoder: Decoder
    weight_bytes: int


def build(config: EngineConfig, progress: Progress | None = None) -> Engine:
    """Load the model, choose an implementation of every op, and compile what decoding will call.

    `progress` is told of the stages. Sets PyTorch's thread count if the configuration names one. Raises EngineError
    for a model or a target that cannot be run and dispatch's errors for choices of implementations that cannot be met.
    """
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    dtype = getattr(torch, config.dtype)
    target = probe_target()
    _require_cpu(target)
    directory = model_directory(config.model, of_stage(progress, "converting the model"))
    model_config = read_config(directory)
    facts = {"dtype": config.dtype, "head_dim": model_config.head_dim}
    plan = resolve(discover(), target, facts, read_choices(None))
    tokenizer = load_tokenizer(directory)

    context_length = model_config.max_position_embeddings
    loading = of_stage(progress, "loading weights")
    model = load_model(directory, model_config, plan, dtype, context_length, loading)
    nodes = config.speculative.tree_nodes
    width = context_length + nodes
    slots = SlotAllocator(RUNNING_REQUESTS * width)
    pool = KVPool(slots.total, model_config.num_layers, model_config.num_kv_heads, model_config.head_dim, dtype)
    table = RequestTable(RUNNING_REQUESTS, width, slots, plan)
    drafter = make_drafter(config.speculative)
    runner = ModelRunner(model, pool.keys, pool.values)
    rounds = RecordedRunner(runner) if can_be_recorded(plan) else runner
    decoder = Decoder(plan, rounds, pool, table, drafter, nodes, context_length)
    shallow = ModelRunner(model.first_layers(WARM_LAYERS), pool.keys, pool.values)
    warm_decoder = Decoder(plan, shallow, pool, table, drafter, nodes, context_length)
    warm_up(warm_decoder, plan, pool, nodes, of_stage(progress, "compiling kernels"))
    weights = {weight.data_ptr(): weight.nbytes for weight in model.destinations().values()}
    if not model_config.tie_word_embeddings:
        del weights[model.embedding.data_ptr()]  # of which one row is read
    return Engine(config, directory, model_config, tokenizer, target, plan, slots, decoder, sum(weights.values()))


def _require_cpu(target: Target) -> None:
    """Raise EngineError if Triton would launch kernels elsewhere: weights and KV are in the CPU's memory."""
    if target.kind != "cpu":
        raise EngineError(
            f"Triton's active driver is that of {target}, and the engine decodes on the CPU; "
            "set TRITON_DEFAULT_BACKEND=cpu"
        )
