"""The operations by name: what each does, and the PyTorch function that is its meaning."""

from dispatch.op import Op

OPS = (
    Op("linear", "triton_spec.layers.reference:linear", "x @ weight.T + bias, summed in f32"),
    Op("rms_norm", "triton_spec.layers.reference:rms_norm", "RMS norm, alone or after adding to the residual stream"),
    Op("rotary", "triton_spec.layers.reference:rotary", "rotary position embedding of queries and keys, in place"),
    Op("silu_and_mul", "triton_spec.layers.reference:silu_and_mul", "silu(gate) * up"),
    Op("store_kv_cache", "triton_spec.layers.reference:store_kv_cache", "new keys and values into their slots"),
    Op(
        "extend_attention",
        "triton_spec.attention.reference:extend_attention",
        "attention of new tokens to the cache and to one another, causal or by a tree mask",
    ),
    Op(
        "decode_attention",
        "triton_spec.attention.reference:decode_attention",
        "attention of one new token per request to the cache",
    ),
    Op(
        "build_tree_kernel_efficient",
        "triton_spec.tree.reference:build_tree_kernel_efficient",
        "draft trees from the selected entries of the draft's score list",
    ),
    Op(
        "reconstruct_indices_from_tree_mask",
        "triton_spec.tree.reference:reconstruct_indices_from_tree_mask",
        "positions and links of draft trees from their mask",
    ),
    Op(
        "verify_tree_greedy",
        "triton_spec.verify.reference:verify_tree_greedy",
        "the path of each tree that agrees with the target's most likely tokens",
    ),
    Op(
        "fill_bonus_tokens",
        "triton_spec.accept.reference:fill_bonus_tokens",
        "the last new token of each request: the next root",
    ),
    Op(
        "fill_accept_out_cache_loc",
        "triton_spec.accept.reference:fill_accept_out_cache_loc",
        "the slots of accepted nodes, without gaps",
    ),
    Op(
        "copy_all_layer_kv_cache",
        "triton_spec.accept.reference:copy_all_layer_kv_cache",
        "move rows of every layer's keys and values, read before written",
    ),
    Op(
        "assign_req_to_token_pool",
        "triton_spec.draft.reference:assign_req_to_token_pool",
        "slots of new positions into the request table",
    ),
    Op(
        "assign_extend_cache_locs",
        "triton_spec.draft.reference:assign_extend_cache_locs",
        "slots of positions out of the request table",
    ),
)
