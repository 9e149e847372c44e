"""The public halves of mechanisms: what their laws share, and which one a description is of."""
