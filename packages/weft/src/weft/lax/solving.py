"""Solutions of equations with the derivatives that the equations define."""

from ..higher_order.solve import custom_linear_solve as custom_linear_solve, custom_root as custom_root

__all__ = ["custom_linear_solve", "custom_root"]
