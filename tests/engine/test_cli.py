"""The command line: what it prints, where, and how it ends when something is wrong."""

import io
import json
import os
import subprocess
import sys

import pytest
import torch

from engine import LLM, SamplingParams
from engine.__main__ import main
from tests.tiny import save_tiny_model

METRICS = {"decode_tokens_per_s", "ttft_s", "accept_length", "verify_rounds"}
COUNTING = "1 2 3 4 1 2 3 4 1 2 3"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The directory of a tiny model."""
    directory = tmp_path_factory.mktemp("tiny")
    save_tiny_model(directory)
    return directory


@pytest.fixture(autouse=True)
def same_threads():
    """--threads is a setting of the process; it is set back."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def program(*arguments, **environment):
    """Run the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "engine", *arguments],
        capture_output=True, text=True, timeout=300, env={**os.environ, **environment},
    )  # fmt: skip


def test_json_is_one_object_per_prompt_and_line(model, tmp_path, capsys):
    file = tmp_path / "prompts.json"
    file.write_text(json.dumps(["zwei \n é", {"prompt": COUNTING, "id": 7}]), encoding="utf-8")
    arguments = ["--max-new-tokens", "9", "--dtype", "float32", "--prompts-file", str(file), "--json", "eins"]
    assert main(["generate", "--model", str(model), "--speculative", "ngram", *arguments]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["prompt"] for line in lines] == ["eins", "zwei \n é", COUNTING]
    for line in lines:
        assert line.keys() == {"prompt", "text", "token_ids", "finish_reason", "metrics"}
        assert line["metrics"].keys() == METRICS
        assert 0 < len(line["token_ids"]) <= 9
        assert line["finish_reason"] == ("length" if len(line["token_ids"]) == 9 else "stop")
        assert line["metrics"]["verify_rounds"] < 9
    llm = LLM(model, dtype="float32")
    expected = llm.generate([line["prompt"] for line in lines], SamplingParams(max_new_tokens=9))
    assert [line["token_ids"] for line in lines] == [result.token_ids for result in expected]
    assert [line["text"] for line in lines] == [result.text for result in expected]


def test_the_accept_length_counts_the_bonus_token(model, capsys):
    arguments = ["--raw", "--json", "--max-new-tokens", "12", COUNTING]
    for speculative in ("none", "ngram"):
        assert main(["generate", "--model", str(model), "--speculative", speculative, *arguments]) == 0
        line = json.loads(capsys.readouterr().out)
        metrics = line["metrics"]
        assert metrics["accept_length"] * metrics["verify_rounds"] == pytest.approx(len(line["token_ids"]) - 1)
        assert metrics["accept_length"] >= 1
        assert speculative != "none" or metrics["accept_length"] == 1


def test_a_budget_of_nothing_is_an_empty_answer(model, capsys):
    assert main(["generate", "--model", str(model), "--json", "--max-new-tokens", "0", "a"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert (line["text"], line["token_ids"], line["finish_reason"]) == ("", [], "length")
    assert line["metrics"] == {"decode_tokens_per_s": None, "ttft_s": None, "accept_length": None, "verify_rounds": 0}


def test_text_streams_and_a_line_of_figures_follows(model, capsys):
    arguments = ["--max-new-tokens", "5", "--threads", "1", "ab", "cd"]
    assert main(["generate", "--model", str(model), *arguments]) == 0
    assert torch.get_num_threads() == 1
    captured = capsys.readouterr()
    answers = LLM(model).generate(["ab", "cd"], SamplingParams(max_new_tokens=5))
    shown = "".join(f"> {prompt}\n{answer.text}\n\n" for prompt, answer in zip(("ab", "cd"), answers, strict=True))
    assert captured.out.startswith(shown)
    figures = captured.out[len(shown) :]
    assert figures.startswith(f"{sum(len(answer.token_ids) for answer in answers)} tokens, ")
    assert "accept length 1.00, first token after " in figures
    assert captured.err == ""


def test_characters_that_the_terminal_lacks_are_replaced(model, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert main(["generate", "--model", str(model), "--max-new-tokens", "2", "naïve", "b"]) == 0
    sys.stdout.flush()
    assert b"> na?ve\n" in written.getvalue()


def test_slow_references_are_named_once(model, capsys, monkeypatch):
    monkeypatch.setenv("TRITON_SPEC_PROVIDERS", "linear=reference,rms_norm=reference")
    assert main(["generate", "--model", str(model), "--json", "--max-new-tokens", "2", "a", "b"]) == 0
    assert capsys.readouterr().err.count("slow PyTorch references run linear, rms_norm") == 1


def damaged(model, tmp_path, name, change):
    """A copy of the model with one file changed."""
    copy = tmp_path / "damaged"
    copy.mkdir()
    for path in model.iterdir():
        data = path.read_bytes()
        (copy / path.name).write_bytes(change(data) if path.name == name else data)
    return str(copy)


def replaced(old, new):
    return lambda data: data.replace(old, new)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("model.safetensors", lambda data: data[:-1000], "model.safetensors: the file is damaged, cut short"),
        ("model.safetensors", lambda data: b"", "model.safetensors: the file is damaged, cut short"),
        ("config.json", replaced(b"LlamaForCausalLM", b"MambaForCausalLM"), "'MambaForCausalLM' is not supported"),
        ("config.json", lambda data: b"[" * 99999, "config.json: cannot be read as JSON"),
        ("config.json", replaced(b'"intermediate_size": 96', b'"intermediate_size": 80'), "do not fit"),
        ("tokenizer.json", lambda data: data[:99], "tokenizer files cannot be loaded"),
        ("tokenizer_config.json", lambda data: b"{", "tokenizer_config.json: cannot be read as JSON"),
    ],
    ids=["cut", "emptied", "architecture", "deep json", "other shapes", "tokenizer", "tokenizer settings"],
)
def test_damaged_models_are_errors_that_name_the_file(model, tmp_path, capsys, name, change, message):
    assert main(["generate", "--model", damaged(model, tmp_path, name, change), "a"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("triton-spec: error: ")
    assert message in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "no/such"], "no/such: no such path, and models are not downloaded"),
        (["--model", ""], "no such model; pass a directory"),
        (["--model", "{files}/broken.gguf"], "broken.gguf: "),
        (["--model", "{files}/list.json"], "a model file must end in .gguf"),
        (["--model", "{files}"], "the directory has no config.json"),
        (["--prompts-file", "{files}/absent.json"], "absent.json: cannot be read as JSON: "),
        (["--prompts-file", "{files}/list.json"], "entry 1 is neither a text nor an object"),
        (["--prompts-file", "{files}/broken.json"], "broken.json: cannot be read as JSON: "),
        (["--prompts-file", "{files}/deep.json"], "deep.json: cannot be read as JSON: "),
        (["--prompts-file", "{files}/bytes.json"], "bytes.json: cannot be read as JSON: "),
        (["--prompts-file", "{files}/empty.json"], "with at least one entry"),
        (["--prompts-file", "{files}"], "cannot be read as JSON: "),
        (["--max-new-tokens", "-1"], "max_new_tokens is -1; it must be an integer of at least 0"),
        (["--threads", "0"], "threads is 0; it must be an integer of at least 1"),
        (["--threads", "99999999999"], "threads is 99999999999; it must be at most 1024"),
        ([""], "prompt 2 of the command line is empty"),
        ([" "], "the prompt is empty: the last message has no text"),
        (["\udcff"], "the prompt is not valid Unicode"),
        (["ab" * 300], "the model takes at most 255 and an answer"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_line_and_exit_code_2(model, tmp_path, capsys, arguments, message):
    files = {
        "broken.gguf": b"GGUF" + bytes(200), "list.json": b'["a", 7]', "broken.json": b'["a"',
        "deep.json": b"[" * 99999, "bytes.json": b'["\xff"]', "empty.json": b"[]",
    }  # fmt: skip
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    arguments = [argument.replace("{files}", str(tmp_path)) for argument in arguments]
    assert main(["generate", "--model", str(model), "good prompt", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("triton-spec: error: ")
    assert message in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["generate", "--speculative", "magic", "a"], "argument --speculative: invalid choice: 'magic'"),
        (["generate", "--dtype", "int8", "a"], "argument --dtype: invalid choice: 'int8'"),
        (["generate", "--max-new-tokens", "many", "a"], "argument --max-new-tokens: invalid int value: 'many'"),
        (["generate", "--temperature", "1", "a"], "unrecognized arguments: --temperature"),
        (["translate"], "invalid choice: 'translate'"),
        ([], "arguments are required: COMMAND"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_code_2(capsys, arguments, message):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_no_prompt_is_an_error(capsys):
    assert main(["generate"]) == 2
    assert "there is no prompt; pass PROMPT or --prompts-file F.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ("linear", "'linear' is not op=provider"),
        ("lineal=triton", "lineal"),
        ("linear=cublas", "cublas"),
    ],
)
def test_choices_of_providers_that_cannot_be_met(model, capsys, monkeypatch, choices, message):
    monkeypatch.setenv("TRITON_SPEC_PROVIDERS", choices)
    assert main(["generate", "--model", str(model), "a"]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("triton-spec: error: ")
    assert message in captured.err


def test_a_process_answers_and_keeps_stderr_silent(model):
    done = program("generate", "--model", str(model), "--max-new-tokens", "4", "--json", "--threads", "1", "a")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["prompt"] == "a"


def test_a_process_ends_with_a_code_and_without_traceback():
    done = program("generate", "a", TRITON_CPU_HIDE="mmx")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("triton-spec: error: ")
    assert "mmx" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_fault(model):
    command = f"{sys.executable} -m engine generate --model {model} --max-new-tokens 200 a b c d | head -c 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300)
    assert done.stderr == ""
    assert len(done.stdout) == 1


@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [(">/dev/full", 2, "No space left on device; is there room for the output?"), (">&-", 0, "")],
    ids=["full disk", "closed"],
)
@pytest.mark.parametrize("form", ["", "--json"])
def test_output_that_cannot_be_written(model, redirection, code, message, form):
    command = f"{sys.executable} -m engine generate {form} --model {model} --max-new-tokens 5 a b {redirection}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert done.stderr.count("\n") == bool(message)


@pytest.mark.parametrize("end", ["pass", "raise ValueError('mine')"], ids=["silent end", "exception"])
def test_a_stream_that_is_open_at_the_end_of_the_process_is_no_fault(model, end):
    body = f"stream = LLM({str(model)!r}).stream('a'); next(stream); {end}"
    code = f"from engine import LLM\ndef main():\n    {body}\n    return stream\nopen_stream = main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == (0 if end == "pass" else 1), done.stderr
    assert done.stderr == "" or done.stderr.endswith("ValueError: mine\n")


def test_an_unknown_backend_is_named_and_references_answer(model):
    done = program("generate", "--model", str(model), "--max-new-tokens", "4", "a", TRITON_DEFAULT_BACKEND="tpu")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("triton-spec: slow PyTorch references run ")
    assert "Unknown backend device 'tpu'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_bench_prints_one_object(tmp_path, capsys, monkeypatch):
    save_tiny_model(tmp_path, max_position_embeddings=1024)
    capsys.readouterr()
    monkeypatch.setattr("engine.bench.bandwidth.BUFFER_BYTES", 1 << 24)
    assert main(["bench", "--json", "--model", str(tmp_path), "--max-new-tokens", "6", "--threads", "1"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    report = json.loads(captured.out)
    assert report["target"].startswith("cpu:")
    assert (report["threads"], report["max_new_tokens"], report["model"]) == (1, 6, str(tmp_path))
    assert report["read_bandwidth_gb_s"] > 0
    assert "16 MiB" in report["read_bandwidth_method"]
    rows = {row["mode"]: row for row in report["rows"]}
    assert rows.keys() == {"transformers", "none", "ngram"}
    weights = report["weight_bytes_per_token"] / (report["read_bandwidth_gb_s"] * 1e9)
    for row in rows.values():
        assert row["tokens_per_s"] > 0
        assert row["roofline_fraction"] == pytest.approx(row["tokens_per_s"] * weights)
    assert rows["transformers"]["speedup"] == rows["none"]["speedup_over_plain"] == 1
    assert rows["transformers"]["accept_length"] is None
    assert rows["none"]["accept_length"] == 1
    assert rows["ngram"]["accept_length"] >= 1
    assert rows["none"]["same_as_plain"] == rows["ngram"]["same_as_plain"] == report["prompts"] == 12


def test_bench_prints_a_table(model, capsys, monkeypatch):
    monkeypatch.setattr("engine.bench.bandwidth.BUFFER_BYTES", 1 << 24)
    monkeypatch.setattr("engine.bench.compare.fixed_prompts", lambda: ["ab", "abc"])
    assert main(["bench", "--model", str(model), "--max-new-tokens", "3"]) == 0
    printed = capsys.readouterr().out
    assert "read bandwidth gb s: " in printed
    assert all(mode in printed for mode in ("transformers", "none", "ngram"))
    assert printed.count("2/2") >= 2


@pytest.mark.parametrize("budget", ["-1", "0", "1"])
def test_bench_needs_answers_of_two_tokens(capsys, budget):
    assert main(["bench", "--max-new-tokens", budget]) == 2
    assert f"max_new_tokens is {budget}" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("hidden", ["amx", "amx,avx512", "amx,avx512,avx2"])
def test_smaller_machines_keep_the_promise(hidden):
    prompts = ["Say hello in three languages.", "Repeat: one two three one two three one two three."]
    answers = []
    for speculative in ("none", "ngram"):
        arguments = ("--speculative", speculative, "--max-new-tokens", "48", "--json")
        done = program("generate", *arguments, *prompts, TRITON_CPU_HIDE=hidden)
        assert done.returncode == 0, done.stderr
        answers.append([json.loads(line)["token_ids"] for line in done.stdout.splitlines()])
    assert answers[0] == answers[1]
    assert [len(tokens) for tokens in answers[0]] >= [3, 3]
