"""What type checkers know and Python 3.11 lacks."""
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import override
else:
    def override(method):
        """Marks a method that replaces one of a base class. The type checker refuses the mark where there is none, and an override without it.

        Args:
            method: The method, or the property that wraps it.

        Returns: `method` itself.

        Example:
            >>> from weft.annotations import override
            >>> class Shape:
            ...     def area(self): return 0.0
            >>> class Square(Shape):
            ...     @override
            ...     def area(self): return 1.0
            >>> Square().area()
            1.0
        """
        return method

__all__ = ["override"]
