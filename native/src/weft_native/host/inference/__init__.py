"""Exported programs by name over HTTP: `weft-host --serve FOLDER`."""
