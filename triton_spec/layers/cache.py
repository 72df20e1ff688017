"""Write new keys and values into their slots of the cache."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from triton_spec.layers.arguments import require_store_kv_cache_arguments


@triton.jit
def store_kv_cache_kernel(k, v, k_cache, v_cache, loc, slots,
                          stride_km, stride_kh, stride_vm, stride_vh,
                          stride_kc, stride_kch, stride_vc, stride_vch,
                          DK: tl.constexpr, DV: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1).to(tl.int64)
    slot = tl.load(loc + row).to(tl.int64)
    lanes = tl.arange(0, BLOCK)
    known = (slot >= 0) & (slot < slots)
    in_key = lanes < tl.where(known, DK, 0)
    in_value = lanes < tl.where(known, DV, 0)
    key = tl.load(k + row * stride_km + head * stride_kh + lanes, mask=in_key)
    tl.store(k_cache + slot * stride_kc + head * stride_kch + lanes, key, mask=in_key)
    value = tl.load(v + row * stride_vm + head * stride_vh + lanes, mask=in_value)
    tl.store(v_cache + slot * stride_vc + head * stride_vch + lanes, value, mask=in_value)


def store_kv_cache(
    k: torch.Tensor, v: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, loc: torch.Tensor
) -> None:
    """``k_cache[loc] = k; v_cache[loc] = v``; a row whose slot lies outside the cache is not written.

    k [M, Hk, D], v [M, Hk, Dv], k_cache [slots, Hk, D], v_cache [slots, Hk, Dv] of one dtype (bf16, f16 or f32), only
    the last dimension has to be contiguous; loc [M] int32 or int64. Where loc repeats a slot, which row stays is open.
    Raises ValueError or TypeError for other shapes, dtypes, devices or strides.
    """
    require_store_kv_cache_arguments(k, v, k_cache, v_cache, loc)
    (rows, heads, key_dim), value_dim, slots = k.shape, v.shape[2], k_cache.shape[0]
    if rows == 0 or heads == 0:
        return
    store_kv_cache_kernel[(rows, heads)](
        k, v, k_cache, v_cache, loc, slots, k.stride(0), k.stride(1), v.stride(0), v.stride(1),
        k_cache.stride(0), k_cache.stride(1), v_cache.stride(0), v_cache.stride(1),
        DK=key_dim, DV=value_dim, BLOCK=triton.next_power_of_2(max(key_dim, value_dim)))  # fmt: skip
