"""Attacks on what is published, ours and usual practice's, by someone who knows every record but one.

``python -m benchmarks.attacks`` runs all of it in minutes, and writes ``docs/results/attacks.csv``, the picture and the
tables of ``docs/privacy/attacks.md``.
"""
