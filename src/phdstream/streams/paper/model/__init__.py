"""The model of the paper's method: sees noisy counts only. Everything here is post-processing, at no privacy cost."""
