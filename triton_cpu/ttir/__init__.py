"""Triton's intermediate form as plain objects, read from its printed form."""
