"""How the making of an engine reports what it is doing."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]  # (stage, amount done, amount in all)
StageProgress = Callable[[int, int], None]  # (amount done, amount in all)


def of_stage(progress: Progress | None, stage: str) -> StageProgress | None:
    """The reports of one stage, under its name."""
    if progress is None:
        return None
    return lambda done, total: progress(stage, done, total)
