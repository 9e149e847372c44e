"""What chains of mixtures mean, whichever code ran them."""
