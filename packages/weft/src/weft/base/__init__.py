"""The lowest room: element types, abstract values, meshes, trees, options, errors."""
