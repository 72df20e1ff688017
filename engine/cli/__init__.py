"""The subcommands of `triton-spec`, one module each."""
