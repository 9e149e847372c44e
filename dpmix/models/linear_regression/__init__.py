"""Linear regression given noisy clamped moments."""
