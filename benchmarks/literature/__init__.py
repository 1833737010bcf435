"""Tracking's start against published one-shot methods: `python -m benchmarks.literature` (see ``__main__``).

The published methods are written anew from their papers' descriptions. Their noise is numpy's floating-point Laplace:
they are simulations for a benchmark, whose outputs are never released, and no implementation of them to be used.
"""
