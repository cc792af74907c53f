"""Widgets under their first name, and what the page's worker calls: `weft.widgets` has them."""

from weft.widgets import *  # noqa: F403
from weft.widgets import receive  # noqa: F401  the worker calls it
