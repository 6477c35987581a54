"""Folders as `msprof op` writes them, of our own making: a comma behind every line, `NA`, a row for each block."""

from __future__ import annotations

from pathlib import Path

BASIC = "Op Name,Op Type,Task Duration(us),Block Dim,Mix Block Dim,Device Id,Pid,Current Freq,Rated Freq,"
PIPES = (
    "block_id,sub_block_id,aic_time(us),aic_total_cycles,aic_cube_time(us),aic_cube_ratio,aic_mte2_time(us),"
    "aic_mte2_ratio,aic_mte2_active_bw(GB/s),aic_icache_miss_rate,aiv_time(us),aiv_total_cycles,aiv_vec_time(us),"
    "aiv_vec_ratio,aiv_mte2_time(us),aiv_mte2_ratio,aiv_scalar_mte2_stall_time(us),aiv_icache_miss_rate,"
)
MEMORY = (
    "block_id,sub_block_id,aic_time(us),aic_total_cycles,aiv_time(us),aiv_total_cycles,aiv_gm_to_ub_bw(GB/s),"
    "aiv_mte2_instructions,aiv_mte2_ratio,read_main_memory_datas(KB),write_main_memory_datas(KB),"
    "GM_to_L1_datas(KB),L1_to_GM_datas(KB)(estimate),GM_to_UB_datas(KB),UB_to_GM_datas(KB),"
)
ARITHMETIC = (
    "block_id,sub_block_id,aic_time(us),aic_total_cycles,aic_cube_fops,aiv_time(us),aiv_total_cycles,aiv_vec_ratio,"
    "aiv_vec_fops,"
)
L2 = (
    "block_id,sub_block_id,aiv_time(us),aiv_total_cycles,aiv_write_cache_hit,aiv_write_cache_miss_allocate,"
    "aiv_r0_read_cache_hit,aiv_r0_read_cache_miss_allocate,aiv_total_hit_rate(%),"
)
CONFLICTS = "block_id,sub_block_id,aiv_time(us),aiv_total_cycles,aiv_vec_total_cflt_ratio,aiv_vec_wait_ratio,"

VECTOR = ("20.000000", "22.000000", "23.500001", "10.500000")
"""Times of four blocks; the last one is the tail. Mean 19.00000025, longest 23.500001."""


def table(path: Path, header: str, rows: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")


def vector_launch(folder: Path, stamp: str = "", current: str = "1800", rated: str = "1800") -> Path:
    """A vector kernel on four blocks, with every table."""
    basic = f"add_custom,vector,26.060000,4,NA,0,77,{current},{rated},"
    table(folder / f"OpBasicInfo{stamp}.csv", BASIC, [basic])
    none = "NA," * 8
    pipes = [
        f"{block},vector0,{none}{time},40000,{vec},0.072239,{mte2},0.5,0.250000,0.01,"
        for block, (time, vec, mte2) in enumerate(
            zip(VECTOR, ("1.5", "1.5", "2.0", "1.0"), ("10.0", "11.0", "12.0", "5.001"), strict=True)
        )
    ]
    table(folder / f"PipeUtilization{stamp}.csv", PIPES, pipes)
    memory = [
        f"{block},vector0,NA,NA,{time},40000,30.5,16,0.5,1024.125,512.0,NA,NA,1024.0,NA,"
        for block, time in enumerate(VECTOR)
    ]
    table(folder / f"Memory{stamp}.csv", MEMORY, memory)
    arithmetic = [f"{block},vector0,NA,NA,NA,{time},40000,0.07,524288," for block, time in enumerate(VECTOR)]
    table(folder / f"ArithmeticUtilization{stamp}.csv", ARITHMETIC, arithmetic)
    l2 = [f"{block},vector0,{time},40000,10,2,100,{block},88.5," for block, time in enumerate(VECTOR)]
    table(folder / f"L2Cache{stamp}.csv", L2, l2)
    conflicts = [f"{block},vector0,{time},40000,0.01,0.2," for block, time in enumerate(VECTOR)]
    table(folder / f"ResourceConflictRatio{stamp}.csv", CONFLICTS, conflicts)
    (folder / "visualize_data.bin").write_bytes(b"\0")
    return folder


def mixed_launch(folder: Path) -> Path:
    """A kernel on one cube core and its two vector cores, with the older columns."""
    table(folder / "OpBasicInfo.csv", BASIC, ["main_kernel_mix_aic,mix,9.200000,1,2,0,NA,1800,1800,"])
    nones = {"aic": "NA," * 8, "aiv": "NA," * 7}
    rows = [
        f"0,cube0,9.000000,16200,0.313889,0.034877,4.5,0.5,1.0,0.0,{nones['aiv']}NA,",
        f"0,vector0,{nones['aic']}3.000000,5400,1.0,0.111,0.5,0.05,0.0,0.0,",
        f"0,vector1,{nones['aic']}5.000000,9000,2.0,0.222,0.7,0.07,0.0,0.0,",
    ]
    table(folder / "PipeUtilization.csv", PIPES, rows)
    return folder


def launch_310p(folder: Path) -> Path:
    """A kernel on 310P: no Mix Block Dim, no block columns, cube cores only."""
    header = "Op Name,Op Type,Task Duration(us),Block Dim,Device Id,Pid,Current Freq,Rated Freq,"
    table(folder / "OpBasicInfo.csv", header, ["add_custom,vector,26.060000,4,0,77,NA,NA,"])
    pipes = "aic_time(us),aic_total_cycles,aic_vec_time(us),aic_vec_ratio,aic_mte2_time(us),aic_mte2_ratio,"
    table(folder / "PipeUtilization.csv", pipes, ["20.0,40000,2.5,0.1,12.25,0.6,"])
    return folder


def launch_950(folder: Path) -> Path:
    """A kernel on 950: other counts of the L2 cache, and ratios that A3 does not have."""
    table(folder / "OpBasicInfo.csv", BASIC, ["add_simt,vector,26.060000,2,NA,0,77,1650,1650,"])
    header = "block_id,sub_block_id,aiv_time(us),aiv_total_cycles,aiv_read_close_hit,aiv_write_far_victim,"
    table(folder / "L2Cache.csv", header, ["0,vector0,20.0,1,7,1,", "1,vector0,21.0,1,8,0,"])
    header = "block_id,sub_block_id,aiv_time(us),aiv_total_cycles,aiv_vec_ratio,aiv_vec_simt_vf_ratio,"
    table(folder / "ArithmeticUtilization.csv", header, ["0,vector0,20.5,1,0.5,0.4,", "1,vector0,21.5,1,0.5,0.4,"])
    return folder
