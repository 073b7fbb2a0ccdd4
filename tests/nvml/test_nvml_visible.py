"""CUDA_VISIBLE_DEVICES as people write it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Play = Callable[..., list[Any]]
ALIKE = "".join(
    f'device {n} name="NVIDIA A100" uuid=GPU-{n}abc{n} total=80G used=0\n' for n in range(3)
)
MIXED = ALIKE.replace('device 2 name="NVIDIA A100"', 'device 2 name="NVIDIA T4"')
MIG = (
    'device 0 name="NVIDIA A100" uuid=GPU-0abc0 total=80G mig=1\n'
    "mig 0/0 name=M uuid=MIG-11ab total=40G gi=1 ci=0\n"
    "mig 0/1 name=M uuid=MIG-22ab total=40G gi=2 ci=0\n"
)


def seen(play: Play, scenario: str, *values: str, **more: str) -> list[list[str] | str]:
    environs = [{"CUDA_VISIBLE_DEVICES": value, **more} for value in values]
    answers = play(scenario, mode="visible", environs=environs)
    return [answer.get("devices") or answer["reason"] for answer in answers]


def test_indices_and_uuids_choose_in_their_order(play: Play) -> None:
    assert seen(play, ALIKE, "2,0", " 1 ", "GPU-1abc1,GPU-0", "1,-1,2", "0,7,1") == [
        ["GPU 2", "GPU 0"],
        ["GPU 1"],
        ["GPU 1", "GPU 0"],
        ["GPU 1"],
        ["GPU 0"],
    ]


def test_lists_that_name_no_gpu_hide_all(play: Play) -> None:
    answers = seen(play, ALIKE, "", "-1", "NoDevFiles", "0,0", "GPU-", "GPU-zzz", "MIG-1")
    assert all(isinstance(a, str) and "hides every GPU" in a for a in answers)


def test_no_variable_means_all(play: Play) -> None:
    (answer,) = play(ALIKE, mode="visible", environs=[{}])
    assert answer == {"devices": ["GPU 0", "GPU 1", "GPU 2"], "ordered": True}


def test_indices_of_different_cards_are_not_guessed(play: Play) -> None:
    environs = [
        {"CUDA_VISIBLE_DEVICES": "0"},
        {"CUDA_VISIBLE_DEVICES": "0", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
        {"CUDA_VISIBLE_DEVICES": "GPU-2"},
    ]
    answers = play(MIXED, mode="visible", environs=environs)
    assert [(a["devices"], a["ordered"]) for a in answers] == [
        (["GPU 0", "GPU 1", "GPU 2"], False),
        (["GPU 0"], True),
        (["GPU 2"], True),
    ]


def test_mig_instances_are_named_by_new_and_old_ids(play: Play) -> None:
    assert seen(play, MIG, "MIG-22", "MIG-GPU-0abc0/1/0", "0") == [
        ["GPU 0 MIG 1"],
        ["GPU 0 MIG 0"],
        ["GPU 0 MIG 0"],
    ]
