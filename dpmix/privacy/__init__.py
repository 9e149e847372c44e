"""Privacy notions, exact conversions between them, composition, and the noise of real releases."""
