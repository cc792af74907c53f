"""What the primitives declare about programs from outside (`Primitive.wire`); as a script, all of it as text."""

import importlib
import pkgutil
from collections.abc import Iterator

import weft
from weft.core.primitive import registry
from weft.core.wire import Wire
from weft.experimental import checkify, sparse  # noqa: F401  their primitives enter the registry
from weft.export import call, language  # noqa: F401


def declared(portable: bool) -> dict[str, Wire]:
    return {name: p.wire for name, p in sorted(registry.items()) if (p.wire.parameters is not None) == portable}


PORTABLE, REFUSED = declared(True), declared(False)


def lines() -> Iterator[str]:
    for name, wire in declared(True).items():
        yield name + ("; order tokens" if wire.tokens else "")
        for key, kind in sorted(wire.parameters.items()):
            yield f"    {key}: {kind.words}{'' if kind.required else ', or missing'}"
    yield ""
    for name, wire in declared(False).items():
        yield f"{name} is refused: {wire.why_not}"


if __name__ == "__main__":
    for module in pkgutil.walk_packages(weft.__path__, "weft."):
        if module.name not in ("weft.as_jax", "weft.remote"):
            importlib.import_module(module.name)
    print("\n".join(lines()))
