"""An operation: a name, and the PyTorch function that is its meaning."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass

from dispatch.errors import DefinitionError

# Ops become attributes of the plan, beside these.
RESERVED = frozenset({"target", "decisions", "as_dict"})

_IMPORT_STRING = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True)
class Op:
    """An operation.

    Attributes:
        name: what call sites say: `plan.<name>(...)`.
        reference: import string "module:attribute" of the PyTorch function that defines signature, shapes, dtypes,
            errors and results.
        summary: what it does, in a line.

    Raises:
        DefinitionError: a name that cannot be an attribute of the plan, or a malformed import string.
    """

    name: str
    reference: str
    summary: str

    def __post_init__(self) -> None:
        name = self.name
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise DefinitionError(
                f"op name {name!r}: call sites say plan.<name>(...), so it must be a public identifier"
            )
        if name in RESERVED:
            raise DefinitionError(f"op name {name!r} is an attribute of the plan itself; choose another")
        check_import_string(self.reference, f"reference of op {name!r}")


def check_import_string(text: str, whose: str) -> None:
    """Raise DefinitionError unless `text` reads "module:attribute"; `whose` begins the message."""
    if not isinstance(text, str) or not _IMPORT_STRING.fullmatch(text):
        raise DefinitionError(f"{whose}: {text!r} is no import string; write 'package.module:function'")
