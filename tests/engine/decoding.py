"""A decoder over a model that is a plain function of the tokens, read back through the KV pool that decoding fills."""

import random
from collections.abc import Callable, Sequence

import torch

from dispatch.discovery import discover
from dispatch.policy import read_choices
from dispatch.resolve import resolve
from dispatch.target import Target
from engine.attention_batch import AttentionBatch
from engine.config import SamplingParams, SpeculativeConfig
from engine.draft.base import Drafter, DraftTree
from engine.draft.table import make_drafter
from engine.draft.trie import DraftTrie
from engine.kv.pool import KVPool
from engine.kv.slots import SlotAllocator
from engine.kv.table import RequestTable
from engine.request import Request
from engine.step import Decoder

VOCAB = 100
NextToken = Callable[[Sequence[int]], int]


def rambling(tokens: Sequence[int]) -> int:
    """A next token that depends on the last two tokens and falls into loops, as small models do."""
    return (3 * tokens[-1] + 5 * sum(tokens[-2:-1]) + 7) % 23


def attentive(tokens: Sequence[int]) -> int:
    """A next token that depends on every token and its position: any wrong or missing KV shows."""
    return sum((place + 1) * (token + 1) for place, token in enumerate(tokens)) % VOCAB


class TokenModel:
    """A runner whose KV is the token itself and whose logits point at `next_token` of the tokens a row sees."""

    def __init__(self, pool: KVPool, next_token: NextToken, context_length: int) -> None:
        self.pool = pool
        self.next_token = next_token
        self.context_length = context_length
        self.rows_run: list[int] = []  # new tokens of each call

    def forward(
        self,
        token_ids: torch.Tensor,
        positions: torch.Tensor,
        out_cache_loc: torch.Tensor,
        batch: AttentionBatch,
        rows: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Logits: 1 at the next token, 0 elsewhere."""
        assert int(positions.min()) >= 0
        assert int(positions.max()) < self.context_length
        self.rows_run.append(len(token_ids))
        for buffer in (*self.pool.keys, *self.pool.values):
            buffer[out_cache_loc] = token_ids.to(buffer.dtype)[:, None, None]
        logits = torch.zeros(len(token_ids), VOCAB)
        wanted = set(range(len(token_ids)) if rows is None else rows.tolist())
        for request, row in enumerate(batch.req_pool_indices.tolist()):
            count, start = int(batch.extend_seq_lens[request]), int(batch.extend_start_loc[request])
            prefix = int(batch.seq_lens[request]) - count
            slots = batch.req_to_token[row].tolist()
            for node in (node for node in range(count) if start + node in wanted):
                new = range(node + 1)
                if batch.tree_mask is not None:
                    mask = batch.tree_mask.view(-1, count, count)[request, node]
                    new = mask.nonzero().flatten().tolist()
                assert int(positions[start + node]) == prefix + len(new) - 1
                seen = [slots[place] for place in (*range(prefix), *(prefix + k for k in new))]
                logits[start + node, self._next(seen)] = 1
        return logits if rows is None else logits[rows]

    def _next(self, slots: Sequence[int]) -> int:
        seen = [buffer[slots, 0, 0].tolist() for buffer in (*self.pool.keys, *self.pool.values)]
        assert all(tokens == seen[0] for tokens in seen), "layers, or keys and values, hold different tokens"
        return self.next_token([int(token) for token in seen[0]])


class OracleDrafter:
    """Drafts random trees that hold part of the true continuation among wrong guesses, at random places."""

    def __init__(self, next_token: NextToken, num_draft_tokens: int, seed: int) -> None:
        self._next_token = next_token
        self._nodes = num_draft_tokens - 1
        self._random = random.Random(seed)

    def open(self) -> "OracleDraft":
        """State of a new request."""
        return OracleDraft(self._next_token, self._nodes, self._random)


class OracleDraft:
    """The tokens of one request and how to continue them."""

    def __init__(self, next_token: NextToken, nodes: int, generator: random.Random) -> None:
        self._next_token, self._nodes, self._random = next_token, nodes, generator
        self._tokens: list[int] = []

    def extend(self, token_ids: Sequence[int]) -> None:
        """Append tokens."""
        self._tokens += token_ids

    def propose(self, max_depth: int) -> DraftTree:
        """Paths that follow the truth for a while and then leave it."""
        truth = list(self._tokens)
        for _ in range(max_depth):
            truth.append(self._next_token(truth))
        future, trie = truth[len(self._tokens) :], DraftTrie(self._random.randint(0, self._nodes))
        for _ in range(6):
            right = self._random.randint(0, max_depth)
            wrong = [self._random.randrange(VOCAB) for _ in range(self._random.randint(0, max_depth - right))]
            trie.add(future[:right] + wrong)
        return trie.tree()


def reference_plan():
    """Every op by its reference."""
    facts = {"dtype": "float32", "head_dim": 2}
    return resolve(discover(), Target("cpu", "test", frozenset()), facts, read_choices("*=reference"))


class Rig:
    """A decoder with the parts that tests look into."""

    def __init__(
        self,
        drafter: Drafter | SpeculativeConfig | None = None,
        next_token: NextToken = rambling,
        num_draft_tokens: int = 8,
        context_length: int = 64,
        requests: int = 1,
        slots: int | None = None,
    ) -> None:
        plan = reference_plan()
        if drafter is None or isinstance(drafter, SpeculativeConfig):
            drafter = make_drafter(drafter or SpeculativeConfig())
        width = context_length + num_draft_tokens
        self.slots = SlotAllocator(requests * width if slots is None else slots)
        self.pool = KVPool(self.slots.total, layers=2, kv_heads=1, head_dim=2, dtype=torch.float32)
        self.table = RequestTable(requests, width, self.slots, plan)
        self.model = TokenModel(self.pool, next_token, context_length)
        self.decoder = Decoder(plan, self.model, self.pool, self.table, drafter, num_draft_tokens, context_length)

    def answer(self, prompt: Sequence[int], params: SamplingParams, eos_ids: Sequence[int] = ()) -> Request:
        """Decode one request to its end; its slots are given back."""
        request = self.decoder.open(prompt, params, eos_ids)
        try:
            self.decoder.prefill(request)
            while request.finish_reason is None:
                self.decoder.round([request])
        finally:
            self.decoder.close(request)
        return request


def continuation(next_token: NextToken, prompt: Sequence[int], count: int) -> list[int]:
    """The `count` tokens that plain decoding gives."""
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(next_token(tokens))
    return tokens[len(prompt) :]
