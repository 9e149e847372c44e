"""Files of a stranger: a mechanism, a kernel and a sampler, each with its one registration at its end."""
