"""How fast decoding is, beside transformers and beside the memory of this machine."""
