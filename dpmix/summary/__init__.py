"""What is reported of a posterior: the random density with its bands, diagnostics, and warnings in words.

`mixture_summary.summarize_chains` takes what `dpmix.run.chains_reader` reads and gives a `result.Summary`.
"""
