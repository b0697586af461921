"""A network that predicts how training curves go on, trained once on synthetic studies (needs PyTorch and a GPU)."""
