"""This package's implementations of its operations; found through the entry point ``triton_spec.providers``."""

from dispatch.provider import Provider
from dispatch.registry import Registry
from triton_spec.ops import OPS

RANK = 10
FLOATS = {"dtype": ("bfloat16", "float16", "float32")}

# op -> (launcher of its Triton kernel, the facts it can serve)
TRITON = {
    "linear": ("triton_spec.layers.linear:linear", FLOATS),
    "rms_norm": ("triton_spec.layers.norm:rms_norm", FLOATS),
    "rotary": ("triton_spec.layers.rotary:rotary", FLOATS),
    "silu_and_mul": ("triton_spec.layers.activation:silu_and_mul", FLOATS),
    "store_kv_cache": ("triton_spec.layers.cache:store_kv_cache", FLOATS),
    "extend_attention": ("triton_spec.attention.extend:extend_attention", FLOATS),
    "decode_attention": ("triton_spec.attention.decode:decode_attention", FLOATS),
    "build_tree_kernel_efficient": ("triton_spec.tree.build:build_tree_kernel_efficient", {}),
    "reconstruct_indices_from_tree_mask": ("triton_spec.tree.reconstruct:reconstruct_indices_from_tree_mask", {}),
    "verify_tree_greedy": ("triton_spec.verify.greedy:verify_tree_greedy", {}),
    "fill_bonus_tokens": ("triton_spec.accept.advance:fill_bonus_tokens", {}),
    "fill_accept_out_cache_loc": ("triton_spec.accept.compact:fill_accept_out_cache_loc", {}),
    "copy_all_layer_kv_cache": ("triton_spec.accept.move:copy_all_layer_kv_cache", {}),
    "assign_req_to_token_pool": ("triton_spec.draft.slots:assign_req_to_token_pool", {}),
    "assign_extend_cache_locs": ("triton_spec.draft.slots:assign_extend_cache_locs", {}),
}


def register(registry: Registry) -> None:
    """Add the operations and their Triton kernels to the registry."""
    for op in OPS:
        registry.add_op(op)
    for op, (load, domain) in TRITON.items():
        registry.add_provider(Provider(op, "triton", load, frozenset({"triton"}), domain, RANK))
