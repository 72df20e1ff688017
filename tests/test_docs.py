"""What the documents say is so: variables, files, commands, code."""

import ast
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from tests.test_architecture import READS_THE_ENVIRONMENT

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
VARIABLE = re.compile(r"[A-Z]{2,}(_[A-Z]+)+")
PATH = re.compile(r"`((?:dispatch|triton_cpu|triton_spec|engine|tests|docs|benchmarks|scripts|examples)/[\w./]*)`")

each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


def environment_table() -> dict[str, str]:
    """Variable -> who reads it, of docs/environment.md."""
    rows = re.findall(r"^\| `(\w+)` \| `?([^|`]+?)`? \|", (ROOT / "docs/environment.md").read_text(), re.MULTILINE)
    return dict(rows)


def test_the_table_of_environment_variables_is_what_the_code_reads():
    read = {
        node.value: name
        for name in READS_THE_ENVIRONMENT
        for node in ast.walk(ast.parse((ROOT / name).read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and VARIABLE.fullmatch(node.value)
    }
    assert {name: reader for name, reader in environment_table().items() if reader.endswith(".py")} == read


def test_other_variables_of_the_table_belong_to_dependencies():
    assert {reader for reader in environment_table().values() if not reader.endswith(".py")} <= {"Triton", "PyTorch"}


@each_document
def test_links_lead_somewhere(document):
    links = re.findall(r"\]\(([^)#]+)\)", document.read_text())
    assert not [link for link in links if "://" not in link and not (document.parent / link).exists()]


@each_document
def test_files_that_are_named_exist(document):
    assert not [path for path in PATH.findall(document.read_text()) if not (ROOT / path).exists()]


@each_document
def test_make_targets_exist(document):
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = re.findall(r"^ {4}make (\w+(?: \w+)*)|`make (\w+)`", document.read_text(), re.MULTILINE)
    assert {word for pair in named for words in pair for word in words.split()} <= targets


def python_blocks(document: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL)


@each_document
def test_imports_of_examples_work(document):
    for block in python_blocks(document):
        imports = [node for node in ast.parse(block).body if isinstance(node, (ast.Import, ast.ImportFrom))]
        exec(compile(ast.Module(imports, []), str(document), "exec"), {})


def test_the_recipe_of_a_provider_works():
    from dispatch.op import Op
    from dispatch.registry import Registry

    (recipe,) = python_blocks(ROOT / "CONTRIBUTING.md")
    registry, names = Registry(), {}
    registry.add_op(Op(name="linear", reference="triton_spec.layers.reference:linear", summary="a linear layer"))
    exec(recipe, names)
    names["register"](registry)


def test_the_picture_is_svg_for_light_and_dark():
    picture = ElementTree.parse(ROOT / "docs/round.svg").getroot()
    style = picture.findtext("{http://www.w3.org/2000/svg}style")
    assert "prefers-color-scheme:dark" in style
    assert picture.findtext("{http://www.w3.org/2000/svg}title")
