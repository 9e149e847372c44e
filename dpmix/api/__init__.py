"""The verbs of dpmix, one module each: ``dpmix.api.fit.fit`` and so on, offered as ``dpmix.fit``."""
