"""Rotary position embedding: the base frequencies, Llama 3's scaling of them, and the table of angles."""

import math
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Llama3Scaling:
    """Llama 3.1's stretch of the slow frequencies beyond the original context (in tokens)."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position_embeddings: int


@dataclass(frozen=True)
class Rope:
    """The base of the geometric series of frequencies and, if any, its scaling."""

    theta: float
    scaling: Llama3Scaling | None = None


def inverse_frequencies(rope: Rope, head_dim: int) -> torch.Tensor:
    """Angle per position of each pair of channels: [head_dim / 2] f32, radians per token.

    With Llama 3 scaling, wavelengths beyond original/low are divided by the factor, those below original/high stay,
    and those between are interpolated linearly in original/wavelength.
    """
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim
    frequencies = 1.0 / rope.theta**exponents
    scaling = rope.scaling
    if scaling is None:
        return frequencies
    turns = scaling.original_max_position_embeddings * frequencies / (2 * math.pi)  # full turns in the old context
    kept = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    kept = kept.clamp(0.0, 1.0)
    return kept * frequencies + (1.0 - kept) * frequencies / scaling.factor


def rotary_table(rope: Rope, head_dim: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and sines of positions 0 .. length-1: two [length, head_dim / 2] f32 tensors."""
    positions = torch.arange(length, dtype=torch.float32)
    angles = torch.outer(positions, inverse_frequencies(rope, head_dim))
    return angles.cos(), angles.sin()
