"""From jaxprs to StableHLO: `module.lower` is the entry, a function for each primitive stands in the file of its
family.
"""
