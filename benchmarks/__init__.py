"""The figures of this project, each beside the raw conditional append of the same run, server and client.

`python -m benchmarks [NAME…]` prints one line a figure and writes results/*.json. Owns measuring only.
"""
