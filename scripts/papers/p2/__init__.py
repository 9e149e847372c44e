"""The paper on synthesis by Pitman-Yor processes."""
