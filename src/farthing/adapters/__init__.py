"""Farthing where people already work: scikit-learn, and spaces written for other tuners."""
