"""Comparison of tensors, with messages that say where and by how much they differ."""

from __future__ import annotations

import torch

from tests.tolerance import TOLERANCES

_SHOWN = 5  # differing elements listed in a message


def assert_equal(actual: torch.Tensor, expected: torch.Tensor) -> None:
    """The tensors have one shape, dtype and value everywhere; NaN equals NaN, and -0.0 is not 0.0."""
    _same_kind(actual, expected)
    wrong = actual != expected
    if actual.is_floating_point():
        wrong |= torch.signbit(actual) != torch.signbit(expected)
        wrong &= ~(actual.isnan() & expected.isnan())
    if wrong.any():
        raise AssertionError(
            f"{int(wrong.sum())} of {wrong.numel()} elements differ\n{_listing(actual, expected, wrong)}"
        )


def assert_close(actual: torch.Tensor, expected: torch.Tensor, row: str) -> None:
    """The tensors have one shape and dtype and differ by no more than the row of tests/tolerance.py allows.

    NaN and infinities must be at the same places.
    """
    tolerance = TOLERANCES[row]
    _same_kind(actual, expected)
    finite = expected.isfinite()
    assert_equal(actual[~finite], expected[~finite])
    a, e = actual.double(), expected.double()
    difference = (a - e).abs()
    wrong = ~(difference <= tolerance.max_abs + tolerance.max_rel * e.abs()) & finite
    if wrong.any():
        raise AssertionError(
            f"{int(wrong.sum())} of {wrong.numel()} elements differ by more than {tolerance.max_abs} + "
            f"{tolerance.max_rel} |expected| ({row!r} in tests/tolerance.py), the largest by "
            f"{difference[wrong].max().item():.3g}\n{_listing(actual, expected, wrong)}"
        )
    error, size = _root_mean_square(difference[finite]), _root_mean_square(e[finite])
    if error > tolerance.rms * size:
        raise AssertionError(
            f"root mean square of the difference is {error:.3g}, {error / size:.3g} of the reference's; "
            f"{row!r} in tests/tolerance.py allows {tolerance.rms:.3g}"
        )


def _same_kind(actual: torch.Tensor, expected: torch.Tensor) -> None:
    for name in ("shape", "dtype", "device"):
        if getattr(actual, name) != getattr(expected, name):
            raise AssertionError(f"{name} is {getattr(actual, name)}, expected {getattr(expected, name)}")


def _root_mean_square(values: torch.Tensor) -> float:
    return values.square().mean().sqrt().item() if values.numel() else 0.0


def _listing(actual: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor) -> str:
    places = wrong.nonzero()[:_SHOWN].tolist()
    lines = [
        f"  {place}: {actual[tuple(place)].item()!r}, expected {expected[tuple(place)].item()!r}" for place in places
    ]
    return "\n".join(lines)
