"""Logs as people post them: every line below is one that somebody wrote, padded to a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from logs import read_log, series_of

from memdiag.values.measurements import AxisKind

RUNS = 40
MB, GB, MIB, GIB, PAGE = 1e6, 1e9, 2.0**20, 2.0**30, 4096


@dataclass(frozen=True, kw_only=True)
class Log:
    """One kind of line. line: of step i with level `1000 + 3 i`; scale: the level's unit."""

    line: Callable[[int, int], str]
    metric: str
    scale: float
    axis: AxisKind = AxisKind.INDEX
    first: str = ""
    between: str = "\n"
    last: str = ""
    x: Callable[[int], float] | None = None


def _hybrid(i: int) -> str:
    return "Predict -> Correct" if i % 2 else "Correct -> Predict"


LOGS = {
    "count in words": Log(
        line=lambda i, m: f"Memory usage after {i} run(s) (in MiB): {m}",
        metric="memory_usage_bytes",
        scale=MIB,
        x=lambda i: i,
    ),
    "current memory usage": Log(
        line=lambda i, m: f"start Current memory usage: {m}.00 MB",
        metric="current_memory_usage_bytes",
        scale=MB,
    ),
    "increments behind": Log(
        line=lambda i, m: f"iteration {i}: rss {m} MB (+104888 KB; +23019 KB/it.)",
        metric="rss_bytes",
        scale=MB,
        axis=AxisKind.STEP,
        x=lambda i: i,
    ),
    "bare numbers": Log(line=lambda i, m: f"{m}.0", metric="memory", scale=1),
    "bare bytes with commas": Log(
        line=lambda i, m: f"{m * PAGE * 1000:,}", metric="memory_bytes", scale=PAGE * 1000
    ),
    "i=": Log(
        line=lambda i, m: f"i={100 * i}: {m}.0", metric="memory", scale=1, x=lambda i: 100 * i
    ),
    "key=value": Log(line=lambda i, m: f"rss={m}MB\tvms=1195MB", metric="rss_bytes", scale=MB),
    "seconds in brackets": Log(
        line=lambda i, m: (
            f"[{5 * i:7.1f}s] done={15 * i} qps=4.20 rss={m / 1000:.3f}GB cache=107.7MB [OK]"
        ),
        metric="rss_bytes",
        scale=MB,
        axis=AxisKind.SECONDS,
        x=lambda i: 5 * i,
    ),
    "unit in the heading": Log(
        line=lambda i, m: (
            f"Mem memory (MB) | allocated: {m}.0 | max allocated: 21.8 | reserved: 26.0"
            " | max reserved: 26.0"
        ),
        metric="allocated_bytes",
        scale=MB,
    ),
    "pairs": Log(
        line=lambda i, m: (
            f"Memory usage (cuda): alloc cur {m / 1000:.3f}GB alloc peak 15.1GB"
            " reserved cur 17.4GB reserved peak 17.4GB"
        ),
        metric="alloc_cur_bytes",
        scale=MB,
    ),
    "mmdet": Log(
        line=lambda i, m: (
            f"2021-03-01 12:00:{i:02d},123 - mmdet - INFO - Epoch [1][{50 * i}/23454]\tlr: 0.00050,"
            f" eta: 1 day, 3:02:01, time: 0.{41 + i % 7}, memory: {m}, loss: 5.19"
        ),
        metric="memory",
        scale=1,
        axis=AxisKind.STEP,
        x=lambda i: 50 * i,
    ),
    "detectron2": Log(
        line=lambda i, m: (
            f"[02/07 12:45:{i:02d} d2.utils.events]:  eta: 0:12:03  iter: {20 * i + 19}"
            f"  total_loss: 5.9  time: 0.{3 + i % 4}  lr: 1e-5  max_mem: {m}M"
        ),
        metric="max_mem_bytes",
        scale=MB,
        axis=AxisKind.STEP,
        x=lambda i: 20 * i + 19,
    ),
    "torchtitan": Log(
        line=lambda i, m: (
            f"step: {10 * i}  loss:  6.1384  memory: {m / 100:.2f}GiB(52.28%)  tps: 5,856"
        ),
        metric="memory_bytes",
        scale=GIB / 100,
        axis=AxisKind.STEP,
        x=lambda i: 10 * i,
    ),
    "mlx": Log(
        line=lambda i, m: (
            f"Iter {10 * i}: Train loss 0.413, Learning Rate 1.000e-06, It/sec 0.247, Tokens/sec"
            f" 159.343, Trained Tokens {473342 + i}, Peak mem {m / 10:.1f} GB"
        ),
        metric="peak_mem_bytes",
        scale=GB / 10,
        axis=AxisKind.STEP,
        x=lambda i: 10 * i,
    ),
    "yolo": Log(
        line=lambda i, m: f"      {i + 1}/100      {m / 100:.2f}G      2.681      4.744",
        metric="memory_bytes",
        scale=GB / 100,
        axis=AxisKind.STEP,
        x=lambda i: i + 1,
    ),
    "yolo with its header and bar": Log(
        line=lambda i, m: (
            "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n"
            f"      {i + 1}/100      {m / 100:.2f}G      2.681      4.744      1.2   34   640:"
            " 100%|##########| 10/10 [00:05<00:00,  1.9it/s]"
        ),
        metric="memory_bytes",
        scale=GB / 100,
        axis=AxisKind.EPOCH,
        x=lambda i: i + 1,
    ),
    "yolo without decimals": Log(
        line=lambda i, m: f"      {i + 1}/100      {m}G      2.681      4.744",
        metric="memory_bytes",
        scale=GB,
        axis=AxisKind.STEP,
        x=lambda i: i + 1,
    ),
    "unit in brackets within the name": Log(
        line=lambda i, m: (
            f"{{'loss': 0.5, 'epoch': {i}, 'memory/max_mem_active(gib)': {m}.5,"
            f" 'memory/device_mem_reserved(gib)': {m + 2}.5}}"
        ).replace(".5,", ".0,"),
        metric="memory_max_mem_active_bytes",
        scale=GIB,
        axis=AxisKind.EPOCH,
        x=lambda i: i,
    ),
    "epoch and step": Log(
        line=lambda i, m: f"Epoch: {i // 20}, step: {i % 20}, RAM used: {m / 1000:.3f} GB",
        metric="ram_used_bytes",
        scale=MB,
        axis=AxisKind.STEP,
        x=lambda i: i,
    ),
    "tensorflow": Log(
        line=lambda i, m: (
            f"Memory info of GPU /physical_device:GPU:0: current: {m / 1000:.3f}, peak: 2.55"
        ),
        metric="memory_info_of_gpu_physical_device_current",
        scale=1e-3,
    ),
    "memit": Log(
        line=lambda i, m: f"peak memory: {m}.00 MiB, increment: 0.21 MiB",
        metric="peak_memory_bytes",
        scale=MIB,
    ),
    "pfullmem": Log(
        line=lambda i, m: f"pfullmem(rss={m * PAGE}, vms={9 * PAGE}, shared=112, uss=415825920)",
        metric="rss_bytes",
        scale=PAGE,
    ),
    "svmem": Log(
        line=lambda i, m: f"svmem(total=16000000000, percent={m / 100}, used={m * PAGE}, active=1)",
        metric="svmem_used_bytes",
        scale=PAGE,
    ),
    "hand-written steps": Log(
        line=lambda i, m: f"Step {10 * i}: {m:,} MB (+1,853 MB)",
        metric="memory_bytes",
        scale=MB,
        axis=AxisKind.STEP,
        x=lambda i: 10 * i,
    ),
    "phase transitions": Log(
        line=lambda i, m: f"Phase transition: {_hybrid(i)} | VRAM: {m} MB | Copies: {i}",
        metric="vram_bytes",
        scale=MB,
    ),
    "tensor counts": Log(
        line=lambda i, m: f"Step {i}: {m} tensors (CPU: 330, GPU: 6199), RAM: 6388.6 MB",
        metric="tensors",
        scale=1,
        axis=AxisKind.STEP,
        x=lambda i: i,
    ),
    "leading count": Log(
        line=lambda i, m: (
            f"{10000 * i} rss={m}.00MB heapTotal=2.38MB heapUsed=1.49MB external=0.33MB"
        ),
        metric="rss_bytes",
        scale=MB,
        x=lambda i: 10000 * i,
    ),
    "hours": Log(
        line=lambda i, m: f"hour {i} rss {m} KB live 2885",
        metric="rss_bytes",
        scale=1e3,
        axis=AxisKind.SECONDS,
        x=lambda i: 3600 * i,
    ),
    "bars": Log(
        line=lambda i, m: f" {i}: =========================== {m}.00 MB (2120310784 B)",
        metric="memory_bytes",
        scale=MB,
        x=lambda i: i,
    ),
    "julia": Log(
        line=lambda i, m: f"[ Info: Max. RSS:    {m}.000 MiB", metric="max_rss_bytes", scale=MIB
    ),
    "unit in the name": Log(
        line=lambda i, m: f"Used GPU Memory MB {m:,}.00", metric="gpu_memory_bytes", scale=MB
    ),
    "bars without a table": Log(
        line=lambda i, m: (
            f"| {i} | Working:   {m}.00 MB (   +0.15 MB) | Private:  1423.22 MB (   +1.00 MB) |"
        ),
        metric="working_bytes",
        scale=MB,
        x=lambda i: i,
    ),
    "number and name": Log(
        line=lambda i, m: f"    {i} memory_usage: {m}.0",
        metric="memory_usage",
        scale=1,
        x=lambda i: i,
    ),
    "three columns": Log(
        line=lambda i, m: f"{30 * i}    {m / 10:.1f}G    +4.4G",
        metric="memory_bytes",
        scale=GB / 10,
        x=lambda i: 30 * i,
    ),
    "several in a sentence": Log(
        line=lambda i, m: f"Heap usage 10.57 MB.  External usage 1.40 MB.  RSS usage {m}.00 MB.",
        metric="rss_usage_bytes",
        scale=MB,
    ),
    "node": Log(
        line=lambda i, m: (
            f"Current memory usage:  {{ rss: {m * PAGE}, heapTotal: 28870144, heapUsed: 4428680 }}"
        ),
        metric="rss_bytes",
        scale=PAGE,
    ),
    "percent": Log(
        line=lambda i, m: f"memory percent: {m / 100:.2f}%", metric="memory_percent", scale=0.01
    ),
    "markdown": Log(
        line=lambda i, m: f"| t+{60 * i} | {m}.0 MB | +16.6 |",
        first="| time | rss | delta |\n|---|---|---|\n",
        metric="rss_bytes",
        scale=MB,
        axis=AxisKind.SECONDS,
        x=lambda i: 60 * i,
    ),
    "markdown rows alone": Log(
        line=lambda i, m: f"| t+{60 * i} | {m}.0 MB | +16.6 |",
        metric="memory_bytes",
        scale=MB,
        axis=AxisKind.SECONDS,
        x=lambda i: 60 * i,
    ),
    "markdown with lists in cells": Log(
        line=lambda i, m: (
            f"|{i}|9.49|cache_768|1248x832|1|[768, 768]|torch.Size([1, 128, 39, 59])|{m}|8520|"
        ),
        first="|step|s|cache|size|b|bucket|shape|allocated MB|reserved MB|\n"
        "|---|---|---|---|---|---|---|---|---|\n",
        metric="allocated_bytes",
        scale=MB,
        axis=AxisKind.STEP,
        x=lambda i: i,
    ),
    "used of all, with one unit": Log(
        line=lambda i, m: f"step {i} | NVIDIA A100-SXM4-80GB | {m} / 81920 MB | 100 %",
        metric="memory_bytes",
        scale=MB,
        axis=AxisKind.STEP,
        x=lambda i: i,
    ),
    "used of all, named": Log(
        line=lambda i, m: f"iter {i} gpu mem {m}/15817MiB",
        metric="gpu_mem_bytes",
        scale=MIB,
        axis=AxisKind.STEP,
        x=lambda i: i,
    ),
    "seconds since 1970 first": Log(
        line=lambda i, m: f"{1700000000 + 2 * i} {m} MB",
        metric="memory_bytes",
        scale=MB,
        axis=AxisKind.SECONDS,
        x=lambda i: 2 * i,
    ),
    "hyphen before the number": Log(
        line=lambda i, m: f"Epoch-{i} RSS: {m} MB of 32 GB",
        metric="rss_bytes",
        scale=MB,
        axis=AxisKind.EPOCH,
        x=lambda i: i,
    ),
    "dictionary with units in its keys": Log(
        line=lambda i, m: (
            f"{{'loss': 1.2, 'epoch': {i}, 'memory/max_mem_active(gib)': 20.1, "
            f"'memory/max_mem_allocated(mib)': {m}}}"
        ),
        metric="memory_max_mem_allocated_bytes",
        scale=MIB,
        axis=AxisKind.EPOCH,
        x=lambda i: i,
    ),
    "processes in a table": Log(
        line=lambda i, m: f"{34620 + i} 4711 2.6G {m}.0M 150.8M",
        first="time PID rss pss uss\n",
        metric="pss_bytes",
        scale=MIB,
        axis=AxisKind.SECONDS,
        x=lambda i: 34620 + i,
    ),
    "python list": Log(
        line=lambda i, m: f"{m}.0", first="[", between=", ", last="]", metric="memory", scale=1
    ),
}


@pytest.mark.parametrize("kind", LOGS)
def test_line_as_posted_is_read_without_options(tmp_path: Path, kind: str) -> None:
    log = LOGS[kind]
    lines = log.between.join(log.line(i, 1000 + 3 * i) for i in range(RUNS))
    series = series_of(read_log(tmp_path, log.first + lines + log.last), log.metric)
    np.testing.assert_allclose(series.y, [(1000 + 3 * i) * log.scale for i in range(RUNS)], 1e-9)
    assert series.axis.kind is log.axis
    if log.x is not None:
        np.testing.assert_allclose(series.x, [log.x(i) for i in range(RUNS)])
