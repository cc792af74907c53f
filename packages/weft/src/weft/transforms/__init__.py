"""Maps from programs to programs: staging, forward mode, linearization, transposition, batching, dead-code elimination.

They read the rules that primitives carry; of `ops` they use only addition, zeros and the moving of axes.
"""
