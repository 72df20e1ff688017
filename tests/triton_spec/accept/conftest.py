from tests.triton_spec.floating import form

__all__ = ["form"]
