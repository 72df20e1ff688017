"""The forward pass against transformers on the same weights: prefill, decoding, batches and token trees."""

import pytest
import torch
from transformers import LlamaForCausalLM

from dispatch.discovery import discover
from dispatch.policy import read_choices
from dispatch.probe import probe_target
from dispatch.resolve import resolve
from engine.attention_batch import AttentionBatch
from engine.errors import ModelError
from engine.model.config import read_config
from engine.model.load import load_model
from engine.model.locate import model_directory
from engine.model.runner import ModelRunner
from engine.prompt import encode_prompt, load_tokenizer
from tests.compare import assert_close, assert_equal
from tests.tiny import VOCAB_SIZE, save_tiny_model

VARIANTS = {
    "untied": {},
    "tied": {"tie_word_embeddings": True},
    "explicit head size": {"hidden_size": 48, "head_dim": 32},
    "computed head size": {"hidden_size": 48},
    "biases": {"attention_bias": True, "mlp_bias": True},
    "one kv head": {"num_key_value_heads": 1},
    "as many kv heads": {"num_key_value_heads": 4},
    "rope base": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
    "llama3 rope": {
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 500.0,
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 32,
        }
    },
    "shards": {"max_shard_size": "60KB"},
}


class Requests:
    """A runner with scattered KV slots for some requests, and the bookkeeping of their lengths."""

    def __init__(self, directory, provider, dtype=torch.float32, count=2, context=128):
        config = read_config(directory)
        model = load_model(directory, config, plan_of(provider, config, dtype), dtype, context)
        shape = (count * context, config.num_kv_heads, config.head_dim)
        caches = [[torch.empty(shape, dtype=dtype) for _ in range(config.num_layers)] for _ in range(2)]
        self.runner = ModelRunner(model, *caches)
        generator = torch.Generator().manual_seed(1)
        self.slots = torch.randperm(count * context, generator=generator).reshape(count, context).int()
        self.lengths = [0] * count

    def extend(self, new_tokens, tree_mask=None, depths=None, rows=None):
        """Logits of each request's new tokens; a tree's nodes (`depths` of one request's) are not committed."""
        counts = [len(tokens) for tokens in new_tokens]
        starts = [sum(counts[:index]) for index in range(len(counts))]
        places = [torch.arange(have, have + count) for have, count in zip(self.lengths, counts, strict=True)]
        positions = [have + torch.tensor(depths) for have in self.lengths] if depths is not None else places
        slots = [self.slots[index, place] for index, place in enumerate(places)]
        batch = AttentionBatch(
            req_to_token=self.slots,
            req_pool_indices=torch.arange(len(counts)),
            seq_lens=torch.tensor([have + count for have, count in zip(self.lengths, counts, strict=True)]),
            extend_seq_lens=torch.tensor(counts),
            extend_start_loc=torch.tensor(starts),
            max_extend_len=max(counts, default=0),
            tree_mask=tree_mask,
        )
        tokens = torch.tensor([token for request in new_tokens for token in request], dtype=torch.int64)
        logits = self.runner.forward(tokens, torch.cat(positions), torch.cat(slots), batch, rows)
        if tree_mask is None:
            self.lengths = [have + count for have, count in zip(self.lengths, counts, strict=True)]
        return logits


def expected_logits(reference, tokens):
    with torch.inference_mode():
        return reference(torch.tensor([tokens])).logits[0].float()


def tokens(count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, VOCAB_SIZE, (count,), generator=generator).tolist()


def plan_of(provider, config, dtype):
    """The plan in which every op is done by one provider."""
    facts = {"dtype": str(dtype).removeprefix("torch."), "head_dim": config.head_dim}
    return resolve(discover(), probe_target(), facts, read_choices(f"*={provider}"))


@pytest.fixture(params=["reference", "triton"])
def provider(request):
    """Who does the ops."""
    return request.param


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The directory of a tiny model and the model as transformers loads it."""
    directory = tmp_path_factory.mktemp("tiny")
    save_tiny_model(directory)
    return directory, LlamaForCausalLM.from_pretrained(directory)


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())
def test_prefill_and_decoding_agree_with_transformers(tmp_path, provider, changes):
    save_tiny_model(tmp_path, **changes)
    reference = LlamaForCausalLM.from_pretrained(tmp_path)
    first, second = tokens(70, seed=1), tokens(9, seed=2)
    requests = Requests(tmp_path, provider)
    prefill = requests.extend([first[:-2], second[:-2]])
    decoded = [requests.extend([[first[-2]], [second[-2]]]), requests.extend([[first[-1]], [second[-1]]])]
    for start, whole, row in ((0, first, 0), (len(first) - 2, second, 1)):
        actual = torch.cat([prefill[start : start + len(whole) - 2], *(step[row : row + 1] for step in decoded)])
        assert_close(actual, expected_logits(reference, whole), "logits f32")


def test_a_prompt_in_chunks_gives_the_logits_of_the_whole(tiny, provider):
    directory, reference = tiny
    prompt, requests = tokens(40), Requests(directory, provider, count=1)
    logits = torch.cat([requests.extend([prompt[a:b]]) for a, b in ((0, 17), (17, 18), (18, 40))])
    assert_close(logits, expected_logits(reference, prompt), "logits f32")


def test_tree_nodes_see_the_prefix_and_their_own_path(tiny, provider):
    directory, reference = tiny
    parents, depths = [-1, 0, 0, 1, 2, 2], [0, 1, 1, 2, 2, 2]
    prefixes, trees = [tokens(21, seed=3), tokens(5, seed=4)], [tokens(6, seed=5), tokens(6, seed=6)]
    paths = [[node] for node in range(6)]
    for node, parent in enumerate(parents):
        if parent >= 0:
            paths[node] = [*paths[parent], node]
    mask = torch.zeros(6, 6, dtype=torch.bool)
    for node, path in enumerate(paths):
        mask[node, path] = True
    requests = Requests(directory, provider)
    requests.extend(prefixes)
    logits = requests.extend(trees, tree_mask=mask.flatten().repeat(2), depths=depths).reshape(2, 6, -1)
    for request, (prefix, tree) in enumerate(zip(prefixes, trees, strict=True)):
        for node, path in enumerate(paths):
            expected = expected_logits(reference, prefix + [tree[i] for i in path])[-1]
            assert_close(logits[request, node], expected, "logits f32")


def test_selected_rows_are_those_rows(tiny, provider):
    every = Requests(tiny[0], provider, count=1).extend([tokens(12)])
    some = Requests(tiny[0], provider, count=1).extend([tokens(12)], rows=torch.tensor([11, 3]))
    assert every.dtype == some.dtype == torch.float32
    assert_close(some, every[[11, 3]], "logits f32")


def test_no_tokens_give_no_logits(tiny, provider):
    assert Requests(tiny[0], provider, count=1).extend([[]]).shape == (0, VOCAB_SIZE)


def test_bf16_gives_close_logits_in_f32(tiny, provider):
    directory, _ = tiny
    reference = LlamaForCausalLM.from_pretrained(directory, dtype=torch.bfloat16).float()  # the same rounded weights
    logits = Requests(directory, provider, torch.bfloat16, count=1).extend([tokens(30)])
    assert logits.dtype == torch.float32
    assert_close(logits, expected_logits(reference, tokens(30)), "logits bf16")


def test_the_head_of_a_tied_checkpoint_is_the_embedding(tmp_path):
    save_tiny_model(tmp_path, tie_word_embeddings=True)
    config = read_config(tmp_path)
    model = load_model(tmp_path, config, plan_of("reference", config, torch.float32), torch.float32, 16)
    assert_equal(model.lm_head, model.embedding)
    assert model.lm_head.data_ptr() == model.embedding.data_ptr()


def test_weights_of_another_configuration_are_listed(tmp_path):
    save_tiny_model(tmp_path)
    text = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(text.replace('"intermediate_size": 96', '"intermediate_size": 80'))
    config = read_config(tmp_path)
    plan = plan_of("reference", config, torch.float32)
    with pytest.raises(ModelError, match=r"shape \[96, 64\] where config\.json gives \[80, 64\]: .*gate_proj"):
        load_model(tmp_path, config, plan, torch.float32, 16)


def test_the_embedded_model_agrees_with_transformers(provider):
    directory = model_directory("smollm2")
    ids = encode_prompt(load_tokenizer(directory), read_config(directory), "What is the capital of France?")
    requests = Requests(directory, provider, count=1)
    logits = torch.cat([requests.extend([ids[:-1]]), requests.extend([ids[-1:]])])
    reference = LlamaForCausalLM.from_pretrained(directory, dtype=torch.float32)
    assert_close(logits, expected_logits(reference, ids), "logits f32")
