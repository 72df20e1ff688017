"""Decode rounds recorded at their first run and replayed in one native call: no Python between kernels."""

from dataclasses import replace

import torch
from triton.runtime import driver

from dispatch.plan import Plan
from engine.attention_batch import AttentionBatch
from engine.model.runner import ModelRunner
from triton_cpu import record
from triton_cpu.driver import CPUDriver


def can_be_recorded(plan: Plan) -> bool:
    """Whether a step is made of nothing but kernels that the CPU backend of this project launches."""
    kernels = all(choice.provider == "triton" for choice in plan.decisions)
    return kernels and isinstance(driver.active, CPUDriver)  # asked last: without kernels there may be no driver


class RecordedRunner:
    """A model runner that records its rounds: one recording for each number of tokens, requests and kind of mask.

    Prompts, which have any length, run as they are. The logits of a round are overwritten by the next one of its kind.
    """

    def __init__(self, runner: ModelRunner) -> None:
        self._runner = runner
        self._rounds: dict[tuple[int, ...], _Round] = {}

    @torch.inference_mode()
    def forward(
        self,
        token_ids: torch.Tensor,
        positions: torch.Tensor,
        out_cache_loc: torch.Tensor,
        batch: AttentionBatch,
        rows: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """As `ModelRunner.forward`; a call without `rows` is a round."""
        if rows is not None:
            return self._runner.forward(token_ids, positions, out_cache_loc, batch, rows)
        table = batch.req_to_token.data_ptr()
        kind = (len(token_ids), len(batch.seq_lens), batch.max_extend_len, batch.tree_mask is not None, table)
        if kind not in self._rounds:
            self._rounds[kind] = _Round(self._runner, token_ids, positions, out_cache_loc, batch)
            return self._rounds[kind].logits
        return self._rounds[kind].run(token_ids, positions, out_cache_loc, batch)


class _Round:
    """The kernels of one forward pass with the memory they read and write."""

    def __init__(
        self,
        runner: ModelRunner,
        token_ids: torch.Tensor,
        positions: torch.Tensor,
        out_cache_loc: torch.Tensor,
        batch: AttentionBatch,
    ) -> None:
        self._model = runner.model
        self._embedded = self._model.embed(token_ids)
        self._inputs = [tensor.clone() for tensor in _inputs(positions, out_cache_loc, batch)]
        own_positions, own_loc, rows, lengths, counts, starts, *mask = self._inputs
        own_batch = replace(
            batch,
            req_pool_indices=rows,
            seq_lens=lengths,
            extend_seq_lens=counts,
            extend_start_loc=starts,
            tree_mask=mask[0] if mask else None,
        )
        with record() as self._recording:
            x, residual = self._model.hidden_states(
                self._embedded, own_positions, own_loc, own_batch, runner.k_cache, runner.v_cache
            )
            self.logits = self._model.logits(x, residual)

    def run(
        self, token_ids: torch.Tensor, positions: torch.Tensor, out_cache_loc: torch.Tensor, batch: AttentionBatch
    ) -> torch.Tensor:
        """The same kernels on other inputs of the same shapes."""
        self._model.embed(token_ids, out=self._embedded)
        for own, given in zip(self._inputs, _inputs(positions, out_cache_loc, batch), strict=True):
            own.copy_(given)
        self._recording.replay()
        return self.logits


def _inputs(positions: torch.Tensor, out_cache_loc: torch.Tensor, batch: AttentionBatch) -> list[torch.Tensor]:
    """What changes from round to round, beside the tokens."""
    mask = [] if batch.tree_mask is None else [batch.tree_mask]
    lengths = (batch.req_pool_indices, batch.seq_lens, batch.extend_seq_lens, batch.extend_start_loc)
    return [positions, out_cache_loc, *lengths, *mask]
