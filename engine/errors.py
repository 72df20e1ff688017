"""Errors a user can correct. The command line prints their message without a traceback and exits with a code."""


class EngineError(ValueError):
    """Base of every error caused by what the user asked for; the message says what was wrong and the remedy."""


class ModelError(EngineError):
    """The model cannot be found, read, or run by this engine."""


class PromptError(EngineError):
    """The prompt cannot be answered by this model."""
