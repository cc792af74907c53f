"""Checking derivatives against differences."""

from .testing.gradients import (
    check_grads as check_grads,
    check_jvp as check_jvp,
    check_vjp as check_vjp,
)

__all__ = ["check_grads", "check_jvp", "check_vjp"]


def __dir__() -> list[str]:
    return sorted(__all__)
