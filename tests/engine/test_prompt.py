"""Prompts to token ids, and token ids back to text as they arrive."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer, GPT2Tokenizer

from engine.errors import ModelError, PromptError
from engine.model.config import read_config
from engine.prompt import Detokenizer, encode_prompt, load_tokenizer
from tests.tiny import CHAT_TEMPLATE, save_tiny_model, tiny_tokenizer

STRICT_TEMPLATE = "{{ raise_exception('only assistants') if messages[0]['role'] != 'assistant' }}" + CHAT_TEMPLATE
TOKENIZER = tiny_tokenizer()


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """The configuration of a tiny model of 256 positions."""
    directory = tmp_path_factory.mktemp("model")
    save_tiny_model(directory)
    return read_config(directory)


def test_text_is_one_user_message(config):
    ids = encode_prompt(TOKENIZER, config, "hi")
    assert TOKENIZER.decode(ids) == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert ids == encode_prompt(TOKENIZER, config, [{"role": "user", "content": "hi"}])
    assert ids[0] == 1


def test_a_conversation_keeps_its_messages(config):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "ho"},
        {"role": "user", "content": "hu"},
    ]
    text = TOKENIZER.decode(encode_prompt(TOKENIZER, config, messages))
    assert text.startswith("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nhi")
    assert text.endswith("<|im_start|>user\nhu<|im_end|>\n<|im_start|>assistant\n")


def test_raw_text_is_not_wrapped(config):
    assert TOKENIZER.decode(encode_prompt(TOKENIZER, config, " hi\n", raw=True)) == " hi\n"


@pytest.mark.parametrize("raw", [True, False], ids=["raw", "chat"])
@pytest.mark.parametrize("prompt", ["", []], ids=["text", "messages"])
def test_an_empty_prompt_is_refused(config, prompt, raw):
    with pytest.raises(PromptError, match=r"empty|raw prompts are texts"):
        encode_prompt(TOKENIZER, config, prompt, raw=raw)


@pytest.mark.parametrize("raw", [True, False], ids=["raw", "chat"])
def test_bytes_that_are_no_text_are_refused(config, raw):
    with pytest.raises(PromptError, match=r"not valid Unicode: .*surrogates not allowed"):
        encode_prompt(TOKENIZER, config, "a\udcff", raw=raw)


def test_a_last_message_of_white_space_is_refused(config):
    with pytest.raises(PromptError, match="empty"):
        encode_prompt(TOKENIZER, config, " \n")


@pytest.mark.parametrize("length", [255, 256], ids=["just fits", "one too many"])
def test_a_prompt_must_leave_a_position_for_the_answer(config, length):
    if length == 255:
        assert len(encode_prompt(TOKENIZER, config, "x" * length, raw=True)) == length
    else:
        with pytest.raises(PromptError, match="256 tokens; the model takes at most 255"):
            encode_prompt(TOKENIZER, config, "x" * length, raw=True)


@pytest.mark.parametrize("message", [{"role": "user"}, {"content": "x"}, {"role": "user", "content": 3}, "hi"], ids=str)
def test_malformed_messages_are_refused(config, message):
    with pytest.raises(PromptError, match="role and a content"):
        encode_prompt(TOKENIZER, config, [message])


@pytest.mark.parametrize("prompt", [None, 3], ids=str)
def test_what_is_no_prompt_is_refused(config, prompt):
    with pytest.raises(PromptError, match=f"the prompt is {prompt}; it must be a text"):
        encode_prompt(TOKENIZER, config, prompt)


def test_a_missing_template_names_the_remedy(config):
    with pytest.raises(PromptError, match="no chat template; pass the prompt raw"):
        encode_prompt(tiny_tokenizer(chat_template=None), config, "hi")


def test_a_template_that_refuses_gives_its_reason(config):
    with pytest.raises(PromptError, match="only assistants"):
        encode_prompt(tiny_tokenizer(STRICT_TEMPLATE), config, "hi")


def test_an_id_the_model_does_not_know_is_refused(config):
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens(["zzz"])
    with pytest.raises(PromptError, match=f"{config.vocab_size}"):
        encode_prompt(tokenizer, config, "zzz", raw=True)


def test_a_tokenizer_is_loaded_from_its_directory(tmp_path):
    tiny_tokenizer().save_pretrained(tmp_path)
    assert load_tokenizer(tmp_path).get_vocab() == TOKENIZER.get_vocab()


@pytest.mark.parametrize("name", ["TokenizersBackend", "PreTrainedTokenizerFast"])
def test_the_short_way_gives_the_tokenizer_of_transformers(tmp_path, name):
    tiny_tokenizer().save_pretrained(tmp_path)
    settings = tmp_path / "tokenizer_config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"tokenizer_class": name}))
    loaded, expected = load_tokenizer(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    assert type(loaded) is type(expected)
    assert loaded("12 ab é<|im_end|>")["input_ids"] == expected("12 ab é<|im_end|>")["input_ids"]
    assert loaded.chat_template == expected.chat_template


def test_a_tokenizer_of_a_class_of_its_own_is_loaded_as_that(tmp_path):
    GPT2Tokenizer(vocab={"a": 0, "b": 1, "ab": 2}, merges=[("a", "b")]).save_pretrained(tmp_path)
    assert "GPT2" in type(load_tokenizer(tmp_path)).__name__


@pytest.mark.parametrize("content", [None, "", "{}"], ids=["missing", "empty", "no tokenizer"])
def test_damaged_tokenizer_files_name_the_directory(tmp_path, content):
    if content is not None:
        tiny_tokenizer().save_pretrained(tmp_path)
        (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ModelError, match=tmp_path.name):
        load_tokenizer(tmp_path)


def test_characters_of_several_tokens_are_shown_whole():
    text = "aé😀b"
    detokenizer = Detokenizer(TOKENIZER)
    pieces = [detokenizer.add([token]) for token in TOKENIZER(text)["input_ids"]]
    assert [piece for piece in pieces if piece] == ["a", "é", "😀", "b"]
    assert pieces[-2:] == ["😀", "b"]
    assert detokenizer.finish() == ""


def test_an_unfinished_character_appears_at_the_end():
    ids = TOKENIZER("a😀")["input_ids"][:-1]
    detokenizer = Detokenizer(TOKENIZER)
    assert detokenizer.add(ids[:1]) == "a"
    assert detokenizer.add(ids[1:]) == ""
    assert detokenizer.finish() == "\ufffd"
    assert detokenizer.finish() == ""


def test_special_tokens_are_not_shown():
    detokenizer = Detokenizer(TOKENIZER)
    assert detokenizer.add([1]) + detokenizer.add(TOKENIZER("hi")["input_ids"]) + detokenizer.add([2]) == "hi"


@given(text=st.text(max_size=20), cuts=st.lists(st.integers(0, 80), max_size=8))
def test_pieces_of_any_size_join_to_the_text(text, cuts):
    ids = TOKENIZER(text)["input_ids"]
    bounds = sorted({0, len(ids), *(min(cut, len(ids)) for cut in cuts)})
    detokenizer = Detokenizer(TOKENIZER)
    pieces = [detokenizer.add(ids[a:b]) for a, b in pairwise(bounds)]
    if "\ufffd" not in text:
        assert not any("\ufffd" in piece for piece in pieces)
    assert "".join(pieces) + detokenizer.finish() == text


@given(ids=st.lists(st.integers(0, len(TOKENIZER) - 1), max_size=30))
def test_pieces_of_any_bytes_join_to_the_decoded_text(ids):
    detokenizer = Detokenizer(TOKENIZER)
    text = "".join(detokenizer.add([token]) for token in ids) + detokenizer.finish()
    assert text == TOKENIZER.decode(ids, skip_special_tokens=True)
