"""Loading safetensors: every file and tensor is accounted for before anything is copied."""

import json
import struct

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.errors import ModelError
from engine.model.weights import INDEX_FILE, SINGLE_FILE, load_weights, read_headers

TENSORS = {f"layer{i}.weight": torch.arange(600, dtype=torch.float32).reshape(20, 30) + i for i in range(6)}


def destinations(dtype=torch.float32):
    return {name: torch.empty(tensor.shape, dtype=dtype) for name, tensor in TENSORS.items()}


@pytest.fixture
def sharded(tmp_path):
    """Three shards of two tensors each, with an index."""
    names, places = list(TENSORS), {}
    for shard in range(3):
        file = f"model-0000{shard + 1}-of-00003.safetensors"
        held = names[2 * shard : 2 * shard + 2]
        save_file({name: TENSORS[name] for name in held}, tmp_path / file)
        places |= dict.fromkeys(held, file)
    (tmp_path / INDEX_FILE).write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return tmp_path


def shard(directory, number):
    return directory / f"model-0000{number}-of-00003.safetensors"


def refused(directory, **arguments):
    """The error of a load; nothing may have been copied."""
    places = destinations()
    for tensor in places.values():
        tensor.fill_(-1.0)
    with pytest.raises(ModelError) as caught:
        load_weights(directory, places, **arguments)
    assert all((tensor == -1.0).all() for tensor in places.values())
    return str(caught.value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("stored", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_a_single_file_is_loaded_and_converted(tmp_path, stored, dtype):
    tensors = {name: tensor.to(stored) for name, tensor in TENSORS.items()}
    save_file(tensors, tmp_path / SINGLE_FILE)
    places, seen = destinations(dtype), []
    load_weights(tmp_path, places, progress=lambda done, total: seen.append((done, total)))
    for name, tensor in places.items():
        torch.testing.assert_close(tensor, tensors[name].to(dtype), rtol=0, atol=0)
    total = 6 * 600 * stored.itemsize
    assert seen == [(total // 6 * (i + 1), total) for i in range(6)]


def test_shards_fill_parts_of_a_larger_tensor(sharded):
    fused = torch.empty(120, 30)
    load_weights(sharded, dict(zip(TENSORS, fused.split(20), strict=True)))
    torch.testing.assert_close(fused, torch.cat(list(TENSORS.values())), rtol=0, atol=0)


def test_a_stray_file_has_no_effect(sharded):
    save_file({"layer0.weight": torch.zeros(20, 30)}, sharded / "stray.safetensors")
    places = destinations()
    load_weights(sharded, places)
    torch.testing.assert_close(places["layer0.weight"], TENSORS["layer0.weight"], rtol=0, atol=0)


def test_a_missing_shard_is_named(sharded):
    shard(sharded, 2).unlink()
    assert str(shard(sharded, 2)) in refused(sharded)


@pytest.mark.parametrize("cut", [1, 1024], ids=["one byte", "1 KiB"])
def test_a_shard_cut_short_is_named(sharded, cut):
    file = shard(sharded, 3)
    file.write_bytes(file.read_bytes()[:-cut])
    assert str(file) in refused(sharded)


def test_a_shard_with_bytes_behind_its_tensors_is_named(sharded):
    file = shard(sharded, 3)
    file.write_bytes(file.read_bytes() + bytes(64))
    assert str(file) in refused(sharded)


@pytest.mark.parametrize(
    "start",
    [bytes(8), struct.pack("<Q", 1 << 20), struct.pack("<Q", 1 << 63)],
    ids=["zeroed", "header longer than the file", "huge header"],
)
def test_a_shard_with_a_wrong_header_length_is_named(sharded, start):
    file = shard(sharded, 1)
    file.write_bytes(start + file.read_bytes()[8:])
    assert str(file) in refused(sharded)


@pytest.mark.parametrize("content", [b"", b"garbage", bytes(range(256)) * 8], ids=["empty", "short", "long"])
def test_garbage_is_named(tmp_path, content):
    (tmp_path / SINGLE_FILE).write_bytes(content)
    assert str(tmp_path / SINGLE_FILE) in refused(tmp_path)


def test_an_index_that_promises_a_tensor_its_shard_lacks(sharded):
    index = json.loads((sharded / INDEX_FILE).read_text())
    index["weight_map"]["layer5.weight"] = shard(sharded, 1).name
    (sharded / INDEX_FILE).write_text(json.dumps(index))
    message = refused(sharded)
    assert str(shard(sharded, 1)) in message
    assert "layer5.weight" in message


@pytest.mark.parametrize(
    "index",
    [{}, {"weight_map": []}, {"weight_map": {"layer0.weight": "../model.safetensors"}}, {"weight_map": {"a": 3}}],
    ids=["no map", "a list", "another directory", "a number"],
)
def test_a_malformed_index_is_named(tmp_path, index):
    (tmp_path / INDEX_FILE).write_text(json.dumps(index))
    assert str(tmp_path) in refused(tmp_path)


def test_missing_unused_and_misshapen_tensors_are_listed(tmp_path):
    tensors = {**TENSORS, "extra.weight": torch.zeros(3), "layer1.weight": torch.zeros(30, 20)}
    del tensors["layer0.weight"]
    tensors["layer2.weight"] = TENSORS["layer2.weight"].to(torch.int32)
    save_file(tensors, tmp_path / SINGLE_FILE)
    message = refused(tmp_path)
    for fault in (
        "missing: layer0.weight",
        "unused: extra.weight",
        "shape [30, 20] where config.json gives [20, 30]: layer1.weight",
        "dtype I32 (read are F32, F16, BF16): layer2.weight",
    ):
        assert fault in message


def test_ignored_tensors_may_be_present(tmp_path):
    save_file({**TENSORS, "rotary.inv_freq": torch.zeros(3, dtype=torch.int64)}, tmp_path / SINGLE_FILE)
    load_weights(tmp_path, destinations(), ignored=frozenset({"rotary.inv_freq"}))


def test_no_weight_file_at_all(tmp_path):
    assert SINGLE_FILE in refused(tmp_path)


def test_pickled_weights_are_not_read(tmp_path):
    torch.save({}, tmp_path / "pytorch_model.bin")
    assert "pytorch_model.bin is not read" in refused(tmp_path)


def test_headers_agree_with_the_library(tmp_path):
    save_file(TENSORS, tmp_path / SINGLE_FILE)
    stored = read_headers(tmp_path)
    assert {name: entry.shape for name, entry in stored.items()} == {
        name: tuple(tensor.shape) for name, tensor in load_file(tmp_path / SINGLE_FILE).items()
    }
