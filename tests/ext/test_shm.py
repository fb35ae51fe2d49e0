"""The names of shared memory are there, and say what is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zenlake
from zenlake import shm
from zenlake.errors import ZError

A = shm.AllocAlignment


def test_shared_memory_is_refused_by_name() -> None:
    with pytest.raises(zenlake.ZError, match="zenlake does not support shared memory"):
        shm.ShmProvider.default_backend(1024)
    with pytest.raises(NotImplementedError):
        shm.ShmProvider.default_backend(shm.MemoryLayout(8, A.ALIGN_8_BYTE))


@pytest.mark.parametrize("made", [shm.ShmProvider, shm.ZShm, shm.ZShmMut])
def test_what_needs_memory_cannot_be_made(made: type) -> None:
    with pytest.raises(TypeError, match="No constructor defined"):
        made()


def test_every_way_to_memory_is_refused() -> None:
    provider = object.__new__(shm.ShmProvider)
    for call in (provider.defragment, provider.garbage_collect, provider.garbage_collect_unsafe):
        with pytest.raises(shm.ShmError):
            call()
    with pytest.raises(shm.ShmError):
        provider.alloc(8)
    with pytest.raises(shm.ShmError):
        _ = provider.available
    readable, writable = object.__new__(shm.ZShm), object.__new__(shm.ZShmMut)
    with pytest.raises(shm.ShmError):
        readable.is_valid()
    for memory in (readable, writable):
        with pytest.raises(shm.ShmError):
            bytes(memory)
        with pytest.raises(shm.ShmError):
            str(memory)
    assert repr(writable) == "<ZShmMut>"
    with pytest.raises(shm.ShmError):
        writable[0] = 1
    with pytest.raises(TypeError):
        del writable[0]


def test_no_payload_is_shared_memory() -> None:
    assert zenlake.ZBytes(b"x").as_shm() is None  # type: ignore[func-returns-value]


@given(st.integers(0, 63), st.integers(0, 1 << 70))
def test_sizes_are_rounded_up_to_the_alignment(pow: int, size: int) -> None:
    alignment = A(pow)
    rounded = alignment.align_size(size)
    assert alignment.get_alignment_value() == 2**pow
    assert rounded % 2**pow == 0
    assert 0 <= rounded - size < 2**pow


def test_an_alignment_has_63_powers() -> None:
    with pytest.raises(ZError, match="incorrect layout arguments"):
        A(64)
    with pytest.raises(OverflowError):
        A(-1)
    assert A(2) == A.ALIGN_4_BYTE
    assert hash(A(2)) == hash(A.ALIGN_4_BYTE)
    assert repr(A(2)) == "AllocAlignment(2)"


def test_a_layout_is_a_size_and_an_alignment() -> None:
    layout = shm.MemoryLayout(12, A(2))
    assert (layout.size, layout.alignment) == (12, A(2))
    assert layout == shm.MemoryLayout((12, A(2))) == shm.MemoryLayout(layout)
    assert hash(layout) == hash(shm.MemoryLayout((12, A(2))))
    assert shm.MemoryLayout(13).alignment == A.ALIGN_1_BYTE
    assert repr(layout) == "MemoryLayout(12, AllocAlignment(2))"
    with pytest.raises(ZError, match=r"13 bytes .* align_size\(13\)"):
        shm.MemoryLayout(13, A(2))
    with pytest.raises(ZError, match="0 bytes"):
        shm.MemoryLayout(0)


def test_policies_hold_policies() -> None:
    inner = shm.GarbageCollect(shm.Defragment(), safe=False)
    assert isinstance(shm.BlockOn(inner).inner_policy, shm.GarbageCollect)
    assert isinstance(shm.BlockOn().inner_policy, shm.JustAlloc)
    assert repr(shm.JustAlloc()) == "JustAlloc()"
    assert shm.Deallocate(3).limit == 3
    assert not inner.safe
    with pytest.raises(TypeError, match="expected policy type"):
        shm.BlockOn(3)  # type: ignore[arg-type]
