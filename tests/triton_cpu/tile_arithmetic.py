"""What one AMX multiplication computes, in numpy, after the pseudo-code of Intel's manual (TDPBF16PS, TDPBSSD, ...).

Floating point: products at even and at odd places of k are summed apart, by fused multiply-adds in f32 that start from
zero and go in the order of k; the two sums are added, then that is added to C. Every result is rounded to nearest even;
denormal results become zero, and denormal f32 and bf16 operands count as zero (f16 ones do not).

Assumed where the manual is silent: a result is denormal if it is below 2^-126 after rounding to 24 bits of unbounded
exponent, as for SSE; a NaN may have any sign and payload.
"""

from __future__ import annotations

import numpy as np

_LEAST_NORMAL = 2.0**-126
_HALF_STEP_BELOW = 2.0**-151  # half the distance of 24-bit numbers just below 2^-126


def bf16_product(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """c + a b for bf16. c: [M, N] f32; a: [M, 2K] and b: [K, 2N] uint16, b in pairs: b[k, 2n + i] is row 2k + i."""
    return _float_product(c, _no_denormals(_bf16(a)), _no_denormals(_bf16(b)))


def f16_product(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """c + a b for f16; arguments as for bf16_product."""
    return _float_product(c, a.view(np.float16).astype(np.float32), b.view(np.float16).astype(np.float32))


def int8_product(c: np.ndarray, a: np.ndarray, b: np.ndarray, a_signed: bool, b_signed: bool) -> np.ndarray:
    """c + a b modulo 2^32. c: [M, N] int32; a: [M, 4K] and b: [K, 4N] uint8, b[k, 4n + i] being row 4k + i."""
    k, n = b.shape[0], b.shape[1] // 4
    left = a.view(np.int8 if a_signed else np.uint8).astype(np.int64)
    right = b.view(np.int8 if b_signed else np.uint8).astype(np.int64)
    right = right.reshape(k, n, 4).transpose(0, 2, 1).reshape(4 * k, n)
    return (c.astype(np.int64) + left @ right).astype(np.uint64).astype(np.uint32).view(np.int32)


def fused_multiply_add(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """x * y + z of f32 with one rounding to nearest even; denormal results become zero of the same sign."""
    with np.errstate(all="ignore"):
        product = x.astype(np.float64) * y  # exact: 48 bits
        z = z.astype(np.float64)
        total = product + z
        # What the sum lost decides ties: rounded to odd, the second rounding sees all of the exact sum.
        back = total - product
        lost = (product - (total - back)) + (z - back)
        inexact = np.isfinite(total) & (lost != 0)
        even = total.view(np.int64) & 1 == 0
        odd_neighbour = np.nextafter(total, np.where(lost > 0, np.inf, -np.inf))
        total = np.where(inexact & even, odd_neighbour, total)
        flushed = np.where(np.abs(total) < _LEAST_NORMAL - _HALF_STEP_BELOW, np.copysign(0.0, total), total)
        return flushed.astype(np.float32)


def _float_product(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    m, n, k = *c.shape, b.shape[0]
    a, b = a.reshape(m, k, 1, 2), b.reshape(k, n, 2)
    sums = np.zeros((m, n, 2), np.float32)  # of even and of odd places
    for i in range(k):
        sums = fused_multiply_add(a[:, i], b[i], sums)
    one = np.float32(1)
    both = fused_multiply_add(sums[..., 0], one, sums[..., 1])
    return fused_multiply_add(both, one, _no_denormals(c))


def _bf16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32)


def _no_denormals(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < np.float32(_LEAST_NORMAL), np.copysign(np.float32(0), x), x)
