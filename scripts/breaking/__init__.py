"""Commands that are broken off: what was finished survives, and nothing half done looks finished."""
