"""The studies of the paper and the comparison of defaults: `python -m studies --help`.

They import the library and are not part of its wheel. `runner` runs any study and stores its
results; `networks` trains the networks of the paper; `simulation`, `openml`, `clinical` and
`accuracy` are one study each. Recorded results are in the folder `results`.
"""
