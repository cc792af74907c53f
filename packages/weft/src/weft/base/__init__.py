"""What everything stands on: element types, abstract values, meshes, trees, options, errors."""
