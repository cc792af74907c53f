"""Steps from loop IR to loop IR; pipeline.py lists them in order."""
