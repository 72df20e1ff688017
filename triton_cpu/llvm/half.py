"""Conversions of f16 for processors that have none: the functions that LLVM calls then, as part of the module."""

from __future__ import annotations

from collections.abc import Collection

_CONVERTERS = ("f16c", "avx512_fp16")  # features with instructions for it


def half_functions(llvm_ir: str, features: Collection[str]) -> str:
    """Definitions to append to a module: none where it has no f16, or the processor converts.

    C libraries of compilers have these functions, but not on every machine. Here both are exact, or round to nearest
    even; NaN stays a quiet NaN with the same leading bits.

    Args:
        llvm_ir: text of the module.
        features: instruction sets, see host.py.
    """
    needed = "half" in llvm_ir and not any(feature in features for feature in _CONVERTERS)
    return _FUNCTIONS if needed else ""


# weak and hidden: LLVM finds them when it generates code, and each module keeps its own
_FUNCTIONS = """
define weak hidden float @__extendhfsf2(half %x) nounwind {
  %bits16 = bitcast half %x to i16
  %bits = zext i16 %bits16 to i32
  %magnitude = and i32 %bits, 32767
  %up = shl i32 %magnitude, 13
  %normal = add i32 %up, 939524096
  %count = uitofp i32 %magnitude to float
  %denormal = fmul float %count, 0x3E70000000000000
  %denormal_bits = bitcast float %denormal to i32
  %is_denormal = icmp ult i32 %magnitude, 1024
  %finite = select i1 %is_denormal, i32 %denormal_bits, i32 %normal
  %is_nan = icmp ugt i32 %magnitude, 31744
  %quiet = select i1 %is_nan, i32 2143289344, i32 2139095040
  %special = or i32 %up, %quiet
  %is_finite = icmp ult i32 %magnitude, 31744
  %unsigned = select i1 %is_finite, i32 %finite, i32 %special
  %sign16 = and i32 %bits, 32768
  %sign = shl i32 %sign16, 16
  %result = or i32 %unsigned, %sign
  %wide = bitcast i32 %result to float
  ret float %wide
}

define weak hidden half @__truncsfhf2(float %x) nounwind {
  %bits = bitcast float %x to i32
  %magnitude = and i32 %bits, 2147483647
  %down = lshr i32 %magnitude, 13
  %last = and i32 %down, 1
  %rebased = sub i32 %magnitude, 939520001
  %rounded = add i32 %rebased, %last
  %normal = lshr i32 %rounded, 13
  %absolute = bitcast i32 %magnitude to float
  %aligned = fadd float %absolute, 5.0e-01
  %aligned_bits = bitcast float %aligned to i32
  %denormal = sub i32 %aligned_bits, 1056964608
  %is_denormal = icmp ult i32 %magnitude, 947912704
  %finite = select i1 %is_denormal, i32 %denormal, i32 %normal
  %is_finite = icmp ult i32 %magnitude, 1199566848
  %limited = select i1 %is_finite, i32 %finite, i32 31744
  %payload = and i32 %down, 1023
  %quiet = or i32 %payload, 32256
  %is_nan = icmp ugt i32 %magnitude, 2139095040
  %unsigned = select i1 %is_nan, i32 %quiet, i32 %limited
  %high = lshr i32 %bits, 16
  %sign = and i32 %high, 32768
  %result = or i32 %unsigned, %sign
  %narrow = trunc i32 %result to i16
  %half = bitcast i16 %narrow to half
  ret half %half
}
"""
