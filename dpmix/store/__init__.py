"""The HDF5 files of dpmix: release, chains and summary; `h5` is the only module that opens them."""
