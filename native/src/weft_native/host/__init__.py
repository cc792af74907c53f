"""The accelerator host: weft programs of remote clients, run on this machine's devices. `weft-host --help`."""
