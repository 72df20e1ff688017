"""What the user asks for: an argument, or the environment variable that stands in for it."""

from __future__ import annotations

import os

from dispatch.errors import ChoiceSyntaxError

EVERY_OP = "*"


def read_choices(text: str | None) -> dict[str, str]:
    """Op name (or "*" for all others) -> name of the provider to use.

    `text` reads "linear=triton,rms_norm=reference". None means the value of TRITON_SPEC_PROVIDERS; any text, even an
    empty one, wins over it.

    Raises:
        ChoiceSyntaxError: an item that is not op=provider, or an op named twice.
    """
    source = "choice of providers"
    if text is None:
        source = "TRITON_SPEC_PROVIDERS"
        text = os.environ.get(source, "")
    choices: dict[str, str] = {}
    for item in filter(None, map(str.strip, text.split(","))):
        op, equals, provider = (part.strip() for part in item.partition("="))
        if not (op and equals and provider) or "=" in provider:
            raise ChoiceSyntaxError(
                f"{source} {text!r}: {item!r} is not op=provider; write e.g. linear=triton or *=reference"
            )
        if op in choices:
            raise ChoiceSyntaxError(f"{source} {text!r}: {op!r} is named twice; keep one")
        choices[op] = provider
    return choices
