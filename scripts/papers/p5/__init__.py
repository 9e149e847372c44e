"""The paper on data augmentation: Ju, Awan, Gong and Rao (2022)."""
