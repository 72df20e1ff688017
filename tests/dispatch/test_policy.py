"""Choices: their syntax, and that an argument wins over the environment."""

import pytest

from dispatch.errors import ChoiceSyntaxError
from dispatch.policy import read_choices

VARIABLE = "TRITON_SPEC_PROVIDERS"


@pytest.fixture(autouse=True)
def no_variable(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("", {}),
        ("  ", {}),
        ("linear=triton", {"linear": "triton"}),
        ("linear=triton,rms_norm=reference", {"linear": "triton", "rms_norm": "reference"}),
        (" linear = triton , * = reference ,", {"linear": "triton", "*": "reference"}),
        ("*=reference", {"*": "reference"}),
    ],
    ids=repr,
)
def test_choices_are_read(text, choices, monkeypatch):
    assert read_choices(text) == choices
    monkeypatch.setenv(VARIABLE, text)
    assert read_choices(None) == choices


def test_without_a_variable_there_are_no_choices():
    assert read_choices(None) == {}


@pytest.mark.parametrize(("text", "choices"), [("linear=mine", {"linear": "mine"}), ("", {})], ids=["text", "empty"])
def test_an_argument_wins_over_the_variable(text, choices, monkeypatch):
    monkeypatch.setenv(VARIABLE, "rms_norm=triton")
    assert read_choices(text) == choices


@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("linear", "linear"),
        ("a=b,linear=", "linear="),
        ("=triton", "=triton"),
        ("a=b=c", "a=b=c"),
        ("a=b;c=d", "a=b;c=d"),
    ],
    ids=repr,
)
def test_what_cannot_be_read_is_shown_with_a_right_example(text, item, monkeypatch):
    with pytest.raises(ChoiceSyntaxError, match=rf"choice of providers '{text}': '{item}' is not op=provider; write"):
        read_choices(text)
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ChoiceSyntaxError, match=f"{VARIABLE} '{text}'"):
        read_choices(None)


@pytest.mark.parametrize("text", ["linear=a,linear=b", "linear=a,linear=a"])
def test_an_op_named_twice_is_an_error(text):
    with pytest.raises(ChoiceSyntaxError, match="'linear' is named twice"):
        read_choices(text)
