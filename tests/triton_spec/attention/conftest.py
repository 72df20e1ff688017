from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.triton_spec.floating import form, load_op

__all__ = ["form"]


@pytest.fixture
def extend(form: str) -> Callable:
    return load_op(form, "triton_spec.attention.extend", "extend_attention")


@pytest.fixture
def decode(form: str) -> Callable:
    return load_op(form, "triton_spec.attention.decode", "decode_attention")
