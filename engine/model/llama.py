"""The Llama family: weights fused as they are multiplied, and the forward pass over the ops of a plan."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from dispatch.plan import Plan
from engine.attention_batch import AttentionBatch
from engine.model.config import ModelConfig
from engine.model.rotary import rotary_table


@dataclass(frozen=True)
class LayerWeights:
    """One decoder layer. qkv stacks query, key and value rows, gate_up gate and up rows; biases may be absent."""

    input_norm: torch.Tensor  # [hidden]
    qkv: torch.Tensor  # [(heads + 2 * kv_heads) * head_dim, hidden]
    qkv_bias: torch.Tensor | None
    output: torch.Tensor  # [hidden, heads * head_dim]
    output_bias: torch.Tensor | None
    mlp_norm: torch.Tensor  # [hidden]
    gate_up: torch.Tensor  # [2 * intermediate, hidden]
    gate_up_bias: torch.Tensor | None
    down: torch.Tensor  # [hidden, intermediate]
    down_bias: torch.Tensor | None


class Llama:
    """A Llama model whose weights are to be filled through `destinations`.

    `context_length`: positions 0 .. context_length-1 may be used; the rotary table has that many rows.
    """

    def __init__(self, config: ModelConfig, plan: Plan, dtype: torch.dtype, context_length: int) -> None:
        self.config = config
        self.plan = plan
        self.dtype = dtype
        self.context_length = context_length
        self.embedding = torch.empty(config.vocab_size, config.hidden_size, dtype=dtype)
        self.lm_head = self.embedding if config.tie_word_embeddings else torch.empty_like(self.embedding)
        self.final_norm = torch.empty(config.hidden_size, dtype=dtype)
        self.layers = [self._empty_layer() for _ in range(config.num_layers)]
        self.cos, self.sin = rotary_table(config.rope, config.head_dim, context_length)

    def destinations(self) -> dict[str, torch.Tensor]:
        """Where each tensor of a Hugging Face checkpoint goes: its name -> the (part of a) weight to fill."""
        places = {"model.embed_tokens.weight": self.embedding, "model.norm.weight": self.final_norm}
        if not self.config.tie_word_embeddings:
            places["lm_head.weight"] = self.lm_head
        for index, layer in enumerate(self.layers):
            prefix = f"model.layers.{index}."
            places |= {prefix + name: place for name, place in self._layer_destinations(layer).items()}
        return places

    def ignored_names(self) -> frozenset[str]:
        """Tensors some checkpoints hold that follow from the others: the tied head, old rotary buffers."""
        names = {f"model.layers.{index}.self_attn.rotary_emb.inv_freq" for index in range(self.config.num_layers)}
        return frozenset(names | ({"lm_head.weight"} if self.config.tie_word_embeddings else set()))

    def first_layers(self, count: int) -> "Llama":
        """The model cut after `count` layers, with the same weights: it runs the same kernels in less time."""
        shallow = copy.copy(self)
        shallow.layers = self.layers[:count]
        return shallow

    def embed(self, token_ids: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """The embedding rows [T, hidden] of tokens [T], in a new tensor or in `out`."""
        return torch.index_select(self.embedding, 0, token_ids, out=out)

    def hidden_states(
        self,
        residual: torch.Tensor,
        positions: torch.Tensor,
        out_cache_loc: torch.Tensor,
        batch: AttentionBatch,
        k_cache: Sequence[torch.Tensor],
        v_cache: Sequence[torch.Tensor],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Run the layers on T tokens and store their keys and values at `out_cache_loc`.

        residual: [T, hidden], the embedding rows, added to in place; positions: [T] int64; out_cache_loc: [T] slots;
        k_cache, v_cache: a layer's [slots, kv_heads, head_dim] each.
        Returns the last layer's output and the residual stream it is still to be added to, both [T, hidden].
        """
        eps, plan = self.config.rms_eps, self.plan
        x = residual
        for index, layer in enumerate(self.layers):
            if index == 0:
                y = plan.rms_norm(x, layer.input_norm, eps)
            else:
                y = plan.rms_norm(x, layer.input_norm, eps, residual)  # also adds x to the residual stream
            x = self._attention(layer, y, positions, out_cache_loc, batch, k_cache[index], v_cache[index])
            y = plan.rms_norm(x, layer.mlp_norm, eps, residual)
            y = plan.silu_and_mul(plan.linear(y, layer.gate_up, layer.gate_up_bias))
            x = plan.linear(y, layer.down, layer.down_bias)
        return x, residual

    def logits(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """Logits [rows, vocab] f32 of rows of what `hidden_states` returned; adds `x` to `residual` in place."""
        y = self.plan.rms_norm(x, self.final_norm, self.config.rms_eps, residual)
        return self.plan.linear(y, self.lm_head, out_dtype=torch.float32)

    def _attention(
        self,
        layer: LayerWeights,
        x: torch.Tensor,
        positions: torch.Tensor,
        out_cache_loc: torch.Tensor,
        batch: AttentionBatch,
        k_cache: torch.Tensor,
        v_cache: torch.Tensor,
    ) -> torch.Tensor:
        config, plan = self.config, self.plan
        qkv = plan.linear(x, layer.qkv, layer.qkv_bias)
        qkv = qkv.view(-1, config.num_heads + 2 * config.num_kv_heads, config.head_dim)
        q, k, v = qkv.split([config.num_heads, config.num_kv_heads, config.num_kv_heads], dim=1)
        plan.rotary(q, k, self.cos, self.sin, positions)
        plan.store_kv_cache(k, v, k_cache, v_cache, out_cache_loc)
        scale = config.head_dim**-0.5
        pool = (k_cache, v_cache, batch.req_to_token, batch.req_pool_indices, batch.seq_lens)
        if batch.max_extend_len == 1 and batch.tree_mask is None:
            attended = plan.decode_attention(q, *pool, scale)
        else:
            extend = (batch.extend_seq_lens, batch.extend_start_loc, batch.max_extend_len)
            attended = plan.extend_attention(q, *pool, *extend, scale, batch.tree_mask)
        return plan.linear(attended.flatten(1), layer.output, layer.output_bias)

    def _empty_layer(self) -> LayerWeights:
        config = self.config
        hidden, attended = config.hidden_size, config.num_heads * config.head_dim
        qkv_rows = attended + 2 * config.num_kv_heads * config.head_dim

        def empty(*shape: int, present: bool = True) -> torch.Tensor | None:
            return torch.empty(shape, dtype=self.dtype) if present else None

        return LayerWeights(
            input_norm=empty(hidden),
            qkv=empty(qkv_rows, hidden),
            qkv_bias=empty(qkv_rows, present=config.attention_bias),
            output=empty(hidden, attended),
            output_bias=empty(hidden, present=config.attention_bias),
            mlp_norm=empty(hidden),
            gate_up=empty(2 * config.intermediate_size, hidden),
            gate_up_bias=empty(2 * config.intermediate_size, present=config.mlp_bias),
            down=empty(hidden, config.intermediate_size),
            down_bias=empty(hidden, present=config.mlp_bias),
        )

    def _layer_destinations(self, layer: LayerWeights) -> dict[str, torch.Tensor]:
        config = self.config
        q_rows, kv_rows = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
        places = {"input_layernorm.weight": layer.input_norm, "post_attention_layernorm.weight": layer.mlp_norm}
        attention = (("weight", layer.qkv, layer.output), ("bias", layer.qkv_bias, layer.output_bias))
        for kind, qkv, output in attention:
            if qkv is not None and output is not None:
                q, k, v = qkv.split([q_rows, kv_rows, kv_rows])
                places |= {f"self_attn.q_proj.{kind}": q, f"self_attn.k_proj.{kind}": k}
                places |= {f"self_attn.v_proj.{kind}": v, f"self_attn.o_proj.{kind}": output}
        mlp = (("weight", layer.gate_up, layer.down), ("bias", layer.gate_up_bias, layer.down_bias))
        for kind, gate_up, down in mlp:
            if gate_up is not None and down is not None:
                gate, up = gate_up.chunk(2)
                places |= {f"mlp.gate_proj.{kind}": gate, f"mlp.up_proj.{kind}": up, f"mlp.down_proj.{kind}": down}
        return places
