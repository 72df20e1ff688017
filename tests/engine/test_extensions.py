"""Drafters and model families of other packages, found by entry points."""

import importlib

import pytest

from engine.__main__ import main
from engine.config import SpeculativeConfig
from engine.draft.table import drafters, make_drafter
from engine.errors import EngineError
from engine.model.table import family_of, family_of_gguf

DRAFTER = "class Parrot:\n    def __init__(self, config):\n        self.nodes = config.num_draft_tokens\n"
FAMILY = """
from engine.model.table import Family

FAMILY = Family("ParrotForCausalLM", None, "engine.model.llama:Llama")
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """install(package, text, group, entry point): an installed package with that module and entry point."""
    monkeypatch.syspath_prepend(tmp_path)

    def add(package, text, group, point):
        (tmp_path / f"{package}.py").write_text(text)
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{point}\n")
        importlib.invalidate_caches()

    return add


def test_a_drafter_of_another_package_is_used(install):
    install("a_parrot", DRAFTER, "triton_spec.drafters", "parrot = a_parrot:Parrot")
    assert list(drafters()) == ["none", "ngram", "parrot"]
    drafter = make_drafter(SpeculativeConfig("parrot", num_draft_tokens=5))
    assert (type(drafter).__name__, drafter.nodes) == ("Parrot", 5)


def test_a_name_is_given_once(install, capsys):
    install("another_parrot", DRAFTER, "triton_spec.drafters", "ngram = another_parrot:Parrot")
    with pytest.raises(EngineError, match=r"'ngram': engine\.draft\.ngram:NgramDrafter and another_parrot:Parrot"):
        SpeculativeConfig("ngram")
    assert main(["generate", "hi"]) == 2
    assert capsys.readouterr().err.startswith("triton-spec: error: two things of group triton_spec.drafters")


def test_a_drafter_that_cannot_be_loaded_names_its_package(install):
    install("ill_parrot", "raise OSError('no feathers')", "triton_spec.drafters", "ill = ill_parrot:Parrot")
    config = SpeculativeConfig("ill")
    with pytest.raises(EngineError, match=r"'ill' .*package ill_parrot\): OSError: no feathers"):
        make_drafter(config)


def test_a_family_of_another_package_is_found(install):
    install("parrot_family", FAMILY, "triton_spec.models", "parrot = parrot_family:FAMILY")
    assert family_of("ParrotForCausalLM").model_class().__name__ == "Llama"
    with pytest.raises(EngineError, match=r"'None' is not supported; supported: llama$"):
        family_of_gguf("None")


def test_a_family_that_is_none_is_refused_when_it_is_looked_for(install):
    install("no_family", "FAMILY = 3", "triton_spec.models", "none = no_family:FAMILY")
    assert family_of("LlamaForCausalLM").gguf_architecture == "llama"
    with pytest.raises(EngineError, match=r"no_family:FAMILY is no Family"):
        family_of("ParrotForCausalLM")
