"""The paper on compositional data: Guo, Barrientos and Pena."""
