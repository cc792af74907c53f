"""From jaxprs to StableHLO. The entry is `module.lower`; each primitive has a function in the file of its family."""
