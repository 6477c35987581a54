"""Profiles of Ascend devices: the tables of torch_npu's profiler and of msprof, of 2023 and later."""
