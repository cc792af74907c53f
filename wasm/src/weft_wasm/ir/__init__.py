"""The loop IR: its nodes, walks over them, index arithmetic, the verifier, text and fingerprints."""
