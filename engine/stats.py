"""Figures of one answer: speed, and how many tokens each round gave."""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Metrics:
    """Figures of one answer; None where there is nothing to measure.

    decode_tokens_per_s: tokens after the first per second since the first. ttft_s: seconds to the first token.
    accept_length: tokens kept per round, the bonus token included (plain decoding: 1). verify_rounds: rounds after
    the prompt.
    """

    decode_tokens_per_s: float | None
    ttft_s: float | None
    accept_length: float | None
    verify_rounds: int


class RequestStats:
    """Collects the figures of one request, timed from its making."""

    def __init__(self) -> None:
        self._started = self._latest = time.perf_counter()
        self._ttft: float | None = None
        self._rounds = 0
        self._round_tokens = 0

    def prefilled(self) -> None:
        """The first token is there."""
        self._latest = time.perf_counter()
        self._ttft = self._latest - self._started

    def round_done(self, tokens: int) -> None:
        """A round is over that gave the request `tokens` tokens."""
        self._latest = time.perf_counter()
        self._rounds += 1
        self._round_tokens += tokens

    def metrics(self) -> Metrics:
        """The figures so far."""
        seconds = self._latest - self._started - (self._ttft or 0.0)
        return Metrics(
            decode_tokens_per_s=self._round_tokens / seconds if self._rounds else None,
            ttft_s=self._ttft,
            accept_length=self._round_tokens / self._rounds if self._rounds else None,
            verify_rounds=self._rounds,
        )
