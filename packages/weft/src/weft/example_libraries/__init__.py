"""weft.example_libraries: small libraries of layers (stax) and optimizers, to read and to teach with."""
