"""The paper on released posteriors: Bun, Farina, Gaboardi and Liu."""
