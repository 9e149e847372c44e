"""The discrete model: a Dirichlet or Pitman-Yor process given synthetic records, or a histogram's counts."""
