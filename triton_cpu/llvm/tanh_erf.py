"""Hyperbolic tangent and error function of f32 as straight-line IR. Errors are below 3 ulp.

The coefficients are minimax fits made for this file.
"""

from __future__ import annotations

from triton_cpu.llvm.builder import Builder, Value
from triton_cpu.llvm.explog import clamp_keeping_nan, exp_bounded, expm1_bounded, polynomial

_ERF_NEAR = (  # erf(x) / x - 1 for |x| <= 1, in x^2
    0.12837916612625122, -0.3761262595653534, 0.11283600330352783, -0.026854442432522774,
    0.0051895324140787125, -0.0008020817185752094, 7.889038533903658e-05,
)  # fmt: skip
_ERF_FAR = (  # -log(1 - erf(x)) / x for 1 <= x <= 4
    1.1284890174865723, 0.6359783411026001, 0.10441482067108154, -0.021539127454161644, 0.00200412655249238,
    0.0004218377289362252, -0.00019179483933839947, 3.0196086299838498e-05, -1.860603219938639e-06,
)  # fmt: skip


def tanh_f32(b: Builder, x: Value) -> Value:
    """tanh x of f32."""
    size = clamp_keeping_nan(b, b.intrinsic("fabs", (x,)), 0.0, 10.0)  # tanh(10) is 1 in f32
    grown = expm1_bounded(b, b.binary("fadd", size, size))
    result = b.binary("fdiv", grown, b.binary("fadd", grown, b.const(x.type, 2.0)))
    return b.intrinsic("copysign", (result, x))


def erf_f32(b: Builder, x: Value) -> Value:
    """erf x of f32."""
    one = b.const(x.type, 1.0)
    near = b.fma(x, polynomial(b, b.binary("fmul", x, x), _ERF_NEAR), x)
    size = clamp_keeping_nan(b, b.intrinsic("fabs", (x,)), 0.0, 4.0)  # erf(4) is 1 in f32
    exponent = b.binary("fmul", polynomial(b, size, _ERF_FAR), b.neg(size))
    far = b.intrinsic("copysign", (b.binary("fsub", one, exp_bounded(b, exponent)), x))
    return b.select(b.compare("fcmp olt", size, one), near, far)
