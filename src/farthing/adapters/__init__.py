"""Farthing inside other libraries, one package for each."""
