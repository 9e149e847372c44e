"""Normal kernels of several columns, with normal-inverse-Wishart base measures."""
