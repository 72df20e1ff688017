"""Run a model over the KV buffers of one engine: tokens in, logits out."""

from collections.abc import Sequence

import torch

from engine.attention_batch import AttentionBatch
from engine.model.llama import Llama


class ModelRunner:
    """A model together with its KV buffers, one [slots, kv_heads, head_dim] tensor for keys and values a layer."""

    def __init__(self, model: Llama, k_cache: Sequence[torch.Tensor], v_cache: Sequence[torch.Tensor]) -> None:
        self.model = model
        self.k_cache = k_cache
        self.v_cache = v_cache

    @torch.inference_mode()
    def forward(
        self,
        token_ids: torch.Tensor,
        positions: torch.Tensor,
        out_cache_loc: torch.Tensor,
        batch: AttentionBatch,
        rows: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Run T tokens, storing their keys and values, and return logits [len(rows), vocab] f32.

        token_ids: [T] int64 below vocab_size; positions: [T] int64 below the model's context_length;
        out_cache_loc: [T] KV slots to write; rows: int64 indices of the tokens whose logits are wanted, None: all.
        """
        embedded = self.model.embed(token_ids)
        x, residual = self.model.hidden_states(embedded, positions, out_cache_loc, batch, self.k_cache, self.v_cache)
        if rows is not None:
            x, residual = x[rows], residual[rows]
        return self.model.logits(x, residual)
