"""The paper's experiments, on its simulated vehicles or on any log: compare, ablation, search.

`cases` says on what, `runs` trains and scores one cell of a table, `results` keeps what is done so that a study can be
stopped and continued, `figures` draws it. `remote` trains prepared arrays on a machine with little but PyTorch.
"""
