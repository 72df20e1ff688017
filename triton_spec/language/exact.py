"""Launch options of the kernels on the target model's path."""

from __future__ import annotations

from typing import Any

# No fused a * b + c other than inside tl.dot: whether a compiler fuses depends on the code around it, and a row has to
# get the same bits from every specialisation of a kernel and from every loop in it.
EXACT: dict[str, Any] = {"enable_fp_fusion": False}
