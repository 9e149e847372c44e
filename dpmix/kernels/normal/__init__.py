"""Normal kernels of one column, with normal-inverse-gamma base measures."""
