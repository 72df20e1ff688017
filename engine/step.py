"""The two steps of decoding: run a prompt, then rounds of draft, tree, attention, verify, accept."""

from collections.abc import Iterable, Sequence
from typing import Protocol

import torch

from dispatch.plan import Plan
from engine.accept import accept
from engine.attention_batch import AttentionBatch
from engine.config import SamplingParams
from engine.draft.base import Drafter
from engine.kv.pool import KVPool
from engine.kv.table import RequestTable
from engine.request import Request, token_budget
from engine.tree import build_tree
from engine.verify import require_numbers, verify_greedy

PREFILL_ROWS = 1024  # prompt tokens run at once: bounds the memory of a long prompt's activations


class Runner(Protocol):
    """Runs the target model over the pool's buffers; see `engine.model.runner.ModelRunner`."""

    def forward(
        self,
        token_ids: torch.Tensor,
        positions: torch.Tensor,
        out_cache_loc: torch.Tensor,
        batch: AttentionBatch,
        rows: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Logits [rows, vocab] of T tokens."""


class Decoder:
    """Decodes requests over one model and one KV pool.

    context_length: tokens that a prompt and its answer may have together. Every opened request must be closed,
    whatever happened to it: that frees its slots.
    """

    def __init__(
        self,
        plan: Plan,
        runner: Runner,
        pool: KVPool,
        table: RequestTable,
        drafter: Drafter,
        tree_nodes: int,
        context_length: int,
    ) -> None:
        self._plan = plan
        self._runner = runner
        self._pool = pool
        self._table = table
        self._drafter = drafter
        self._tree_nodes = tree_nodes
        self.context_length = context_length

    def open(self, prompt_ids: Sequence[int], params: SamplingParams, eos_ids: Iterable[int]) -> Request:
        """A new request. Raises PromptError for a prompt that is empty or leaves no position for an answer."""
        budget = token_budget(len(prompt_ids), self.context_length, params)
        stop_ids = {*params.stop_token_ids, *(() if params.ignore_eos else eos_ids)}
        draft = self._drafter.open()  # first: a drafter that fails must not keep a row of the table
        return Request(prompt_ids, budget, stop_ids, self._table.open(), draft)

    def close(self, request: Request) -> None:
        """Free what the request holds."""
        self._table.close(request.row)

    def prefill(self, request: Request) -> None:
        """Run the prompt and emit the first token, or nothing if the budget is 0. Raises ModelError."""
        if request.finish_reason is not None:
            return
        for start in range(0, len(request.prompt_ids), PREFILL_ROWS):
            chunk = request.prompt_ids[start : start + PREFILL_ROWS]
            last = start + len(chunk) == len(request.prompt_ids)
            logits = self._extend(request, chunk, last)
        best, token = logits.max(dim=-1)
        require_numbers(best)
        request.root = int(token)
        request.draft.extend([*request.prompt_ids, request.root])
        request.receive([request.root])
        request.stats.prefilled()

    def round(self, requests: Sequence[Request]) -> None:
        """Give each of the unfinished requests at least one more token. Raises ModelError."""
        drafts = [request.draft.propose(request.remaining - 1) for request in requests]
        nodes = self._tree_nodes if any(draft.tokens for draft in drafts) else 1
        rows = [request.row for request in requests]
        window = self._table.reserve(rows, nodes)
        committed = torch.tensor([row.committed for row in rows])
        tree = build_tree(self._plan, [request.root for request in requests], drafts, committed, nodes)
        starts = torch.arange(len(rows)) * nodes
        batch = AttentionBatch(
            req_to_token=self._table.req_to_token,
            req_pool_indices=self._table.indices(rows),
            seq_lens=committed + nodes,
            extend_seq_lens=torch.full_like(committed, nodes),
            extend_start_loc=starts,
            max_extend_len=nodes,
            tree_mask=tree.mask,
        )
        logits = self._runner.forward(tree.token_ids, tree.positions, window, batch)
        verified = verify_greedy(self._plan, tree, logits)
        accepted = accept(self._plan, verified, window, self._pool)
        for request, run, root in zip(requests, accepted.runs, accepted.roots, strict=True):
            request.row.committed += len(run)
            request.root = root
            kept = request.receive(run)
            request.draft.extend(kept)
            request.stats.round_done(len(kept))

    def _extend(self, request: Request, chunk: Sequence[int], last: bool) -> torch.Tensor:
        """Run prompt tokens after the committed ones; logits [1, vocab] of the last of them if it ends the prompt."""
        row, count = request.row, len(chunk)
        window = self._table.reserve([row], count)
        batch = AttentionBatch(
            req_to_token=self._table.req_to_token,
            req_pool_indices=self._table.indices([row]),
            seq_lens=torch.tensor([row.committed + count]),
            extend_seq_lens=torch.tensor([count]),
            extend_start_loc=torch.tensor([0]),
            max_extend_len=count,
        )
        positions = torch.arange(row.committed, row.committed + count)
        rows = torch.tensor([count - 1] if last else [], dtype=torch.int64)
        logits = self._runner.forward(torch.tensor(chunk), positions, window, batch, rows)
        row.committed += count
        return logits
