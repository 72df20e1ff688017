"""The arithmetic of the emulated tile unit, against exact fractions and the rules of Intel's manual."""

from fractions import Fraction

import numpy as np

from tests.triton_cpu.tile_arithmetic import bf16_product, fused_multiply_add
from tests.triton_cpu.tile_programs import bf16_bits, in_pairs


def rounded(exact: Fraction) -> float:
    """A fraction as the nearest f32, ties to even; zero if below 2^-126 after rounding to 24 bits."""
    if exact == 0:
        return 0.0
    bits = exact.numerator.bit_length() - exact.denominator.bit_length()
    exponent = bits if abs(exact) >= Fraction(2) ** bits else bits - 1
    unit = Fraction(2) ** (exponent - 23)
    result = round(exact / unit) * unit  # Python rounds fractions half to even
    return 0.0 if abs(result) < Fraction(2) ** -126 else float(result)


def test_fused_multiply_add_rounds_once():
    random = np.random.default_rng(4)
    exponents = random.integers(-30, 30, (3, 4000))
    x, y, z = np.ldexp(random.integers(-(2**24), 2**24, (3, 4000)).astype(np.float32), exponents)
    z[:1000] = -x[:1000] * y[:1000] * np.float32(1 + 2.0**-23)  # cancellation
    x[1000:1500], y[1000:1500] = 1 + 2.0**-23, 0.5 - 2.0**-24  # 2^-47 below the middle of two f32
    x[1500:2000], y[1500:2000] = 1 + 2.0**-23, -0.5 + 2.0**-24
    z[1000:2000] = random.integers(2**23, 2**24, 1000)
    x[3000:] = np.ldexp(x[3000:], -70)
    y[3000:], z[3000:] = np.ldexp(y[3000:], -70), random.choice([0, 2.0**-126], 1000)  # about 2^-126
    got = fused_multiply_add(x, y, z)
    numbers = zip(x.tolist(), y.tolist(), z.tolist(), strict=True)
    expected = [rounded(Fraction(p) * Fraction(q) + Fraction(r)) for p, q, r in numbers]
    assert got.tolist() == expected
    assert np.count_nonzero(got == 0) > 50


def test_fused_multiply_add_flushes_what_rounds_to_a_denormal():
    least = np.float32(2.0**-126)
    x = np.array([least, -least, least, least, least], np.float32)
    y = np.array([0.5, 0.5, 1.0, 1 - 2.0**-24, 1 - 2.0**-23], np.float32)
    z = np.float32(0)
    assert fused_multiply_add(x, y, z).tolist() == [0, -0.0, least, 0, 0]
    assert np.signbit(fused_multiply_add(x, y, z)).tolist() == [False, True, False, False, False]
    # halfway between the last 24-bit number below 2^-126 and 2^-126 itself
    above = fused_multiply_add(np.float32(2.0**-63), np.float32(2.0**-63), np.float32(-(2.0**-149)))
    assert above == 0
    assert fused_multiply_add(np.float32(-(2.0**-76)), np.float32(2.0**-76), least) == least


def test_even_and_odd_places_are_summed_apart():
    """1e30 - 1e30 in the even sum vanishes before the odd sum is added; in one chain 1 would be lost."""
    a, b = np.zeros((1, 4), np.float32), np.ones((4, 1), np.float32)
    a[0] = [2.0**100, 1, -(2.0**100), 1]
    got = bf16_product(np.zeros((1, 1), np.float32), bf16_bits(a), in_pairs(bf16_bits(b)))
    assert got.item() == 2.0


def test_c_is_added_last():
    a, b = np.ones((1, 2), np.float32), np.ones((2, 1), np.float32)
    c = np.full((1, 1), 2.0**24, np.float32)
    assert bf16_product(c, bf16_bits(a), in_pairs(bf16_bits(b))).item() == 2.0**24 + 2  # one by one: 2^24


def test_denormals_count_as_zero():
    tiny, one = np.array([[1, 1]], np.uint16), np.full((1, 2), 0x7F00, np.uint16)  # 2^-133; 2^127
    denormal_c = np.full((1, 1), 2.0**-130, np.float32)
    assert bf16_product(denormal_c, tiny, one).item() == 0.0
