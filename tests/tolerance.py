"""How far a floating-point result may be from its reference: one table, with a reason for each row."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tolerance:
    """Bounds on the difference to a reference; all three hold at once.

    Attributes:
        max_abs: an element may differ by ``max_abs + max_rel * |expected|``.
        max_rel: see max_abs.
        rms: bound on the root mean square of the difference over that of the reference.
        reason: what makes the difference, and why it is no more than that.
    """

    max_abs: float
    max_rel: float
    rms: float
    reason: str


_F32_SUM = "the order of a sum in f32: rounding 2^-24 a step, growing with the root of its length"
_BF16_ROUND = "one rounding to bf16 (2^-9) that falls on the other side when the f32 sums differ"
_F16_ROUND = "one rounding to f16 (2^-12) that falls on the other side when the f32 sums differ"

TOLERANCES: dict[str, Tolerance] = {
    "linear f32": Tolerance(2e-5, 1e-5, 2e-6, _F32_SUM),
    "linear bf16": Tolerance(1e-3, 2**-7, 1e-3, _BF16_ROUND),
    "linear f16": Tolerance(2e-4, 2**-10, 2e-4, _F16_ROUND),
    "rms_norm f32": Tolerance(2e-6, 2e-6, 1e-6, _F32_SUM),
    "rms_norm bf16": Tolerance(1e-4, 2**-6, 1e-3, "two roundings to bf16, as in Llama, that fall on the other side"),
    "rms_norm f16": Tolerance(2e-5, 2**-9, 2e-4, "two roundings to f16, as in Llama, that fall on the other side"),
    "rotary f32": Tolerance(1e-6, 1e-6, 2e-7, "fused or separate multiply and add: one rounding of 2^-24"),
    "rotary bf16": Tolerance(1e-4, 2**-7, 1e-3, _BF16_ROUND),
    "rotary f16": Tolerance(2e-5, 2**-10, 2e-4, _F16_ROUND),
    "silu_and_mul f32": Tolerance(1e-6, 2e-6, 1e-6, "another exp: relative error 2^-22 at most"),
    "silu_and_mul bf16": Tolerance(1e-4, 2**-7, 1e-3, _BF16_ROUND),
    "silu_and_mul f16": Tolerance(2e-5, 2**-10, 2e-4, _F16_ROUND),
    "attention f32": Tolerance(1e-5, 1e-5, 2e-6, "another order of two sums in f32, and another exp"),
    "attention bf16": Tolerance(4e-3, 2**-6, 4e-3, "weights and result are rounded to bf16 (2^-9 each)"),
    "attention f16": Tolerance(5e-4, 2**-9, 5e-4, "weights and result are rounded to f16 (2^-12 each)"),
    "attention gradient f32": Tolerance(1e-5, 1e-5, 2e-6, "as attention, through three products"),
    "attention gradient bf16": Tolerance(
        4e-2, 2**-6, 1e-2, "weights, their gradient and the result are rounded to bf16"
    ),
    "attention gradient f16": Tolerance(5e-3, 2**-9, 1e-3, "weights, their gradient and the result are rounded to f16"),
    "softmax f32": Tolerance(1e-7, 1e-6, 1e-6, "another exp, and another order of a sum in f32"),
    "softmax bf16": Tolerance(1e-6, 2**-7, 1e-3, _BF16_ROUND),
    "softmax f16": Tolerance(1e-7, 2**-10, 2e-4, _F16_ROUND),
    "layer_norm f32": Tolerance(2e-6, 2e-6, 1e-6, _F32_SUM),
    "layer_norm bf16": Tolerance(1e-4, 2**-7, 1e-3, _BF16_ROUND),
    "layer_norm f16": Tolerance(2e-5, 2**-10, 2e-4, _F16_ROUND),
    "layer_norm gradient f32": Tolerance(2e-5, 1e-5, 2e-6, _F32_SUM),
    "layer_norm gradient bf16": Tolerance(1e-3, 2**-7, 1e-3, _BF16_ROUND),
    "layer_norm gradient f16": Tolerance(2e-4, 2**-10, 2e-4, _F16_ROUND),
    "library_function f32": Tolerance(1e-7, 5e-7, 1e-7, "functions of two libraries: relative error 2^-22 at most"),
    "library_function f64": Tolerance(1e-15, 1e-15, 3e-16, "functions of two libraries: relative error 2^-51 at most"),
    "logits f32": Tolerance(1e-3, 1e-4, 1e-5, "every layer sums in another order than the other implementation"),
    "logits bf16": Tolerance(
        0.4, 0.01, 0.03, "ten roundings to bf16 (2^-9) a layer; transformers in bf16 is as far from f32: 0.02 (rms)"
    ),
}
