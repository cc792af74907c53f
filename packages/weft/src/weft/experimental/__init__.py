"""What may still change: checkify, io_callback."""
from ..control.callback import io_callback as io_callback
from . import checkify as checkify
