"""Operations, their implementations, and the one choice between them: made before the first call, with a reason."""
