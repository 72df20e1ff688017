"""The memory for keys and values: per layer one buffer each, addressed by slot."""

import torch


class KVPool:
    """Buffers of keys and values, [slots, kv_heads, head_dim] for each layer.

    keys, values: the buffers by layer. data_ptrs [2 * layers] uint64 and row_bytes [2 * layers] int64: their addresses
    and bytes per slot, keys first, as `copy_all_layer_kv_cache` takes them. Memory is touched where slots are used.
    """

    def __init__(self, slots: int, layers: int, kv_heads: int, head_dim: int, dtype: torch.dtype) -> None:
        shape = (slots, kv_heads, head_dim)
        self.keys = [torch.empty(shape, dtype=dtype) for _ in range(layers)]
        self.values = [torch.empty(shape, dtype=dtype) for _ in range(layers)]
        buffers = [*self.keys, *self.values]
        self.data_ptrs = torch.tensor([buffer.data_ptr() for buffer in buffers], dtype=torch.uint64)
        self.row_bytes = torch.tensor([buffer.stride(0) * buffer.element_size() for buffer in buffers])
