"""The loop IR run node by node: the oracle of the passes and emitters."""
