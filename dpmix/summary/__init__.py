"""What is reported of a posterior: the random density with its bands, diagnostics, and warnings in words.

`summary_of_chains` takes what `dpmix.run.chains_reader` reads and gives a `summary_result.Summary`.
"""
