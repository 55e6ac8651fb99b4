"""DLPack: memory shared with other libraries."""

import numpy as np
import pytest

import chainrule as cr


def test_numpy_both_ways():
    a = np.arange(3.0)
    t = cr.from_dlpack(a)
    assert t.dtype == cr.float64
    assert t.is_leaf
    t.add_(1)
    assert a.tolist() == [1, 2, 3]
    back = np.from_dlpack(t)
    assert np.shares_memory(back, a)
    back[0] = 7
    assert t[0] == 7


def test_pytorch_both_ways():
    torch = pytest.importorskip("torch")
    theirs = torch.arange(6, dtype=torch.float32).reshape(2, 3).T
    ours = cr.from_dlpack(theirs)
    assert ours.shape == (3, 2)
    ours.mul_(2)
    assert theirs.tolist() == ours.tolist() == [[0, 6], [2, 8], [4, 10]]
    back = torch.from_dlpack(ours)
    assert back.data_ptr() == theirs.data_ptr()


def test_negative_strides_are_copied():
    # PyTorch aborts at negative strides: were they handed over, no test after this one would run.
    torch = pytest.importorskip("torch")
    backwards = cr.arange(6).reshape(2, 3)[:, ::-1]
    assert torch.from_dlpack(backwards).tolist() == [[2, 1, 0], [5, 4, 3]]
    assert not np.shares_memory(np.from_dlpack(backwards), backwards.numpy())
    assert np.shares_memory(np.from_dlpack(backwards, copy=False), backwards.numpy())


def test_jax_both_ways():
    jnp = pytest.importorskip("jax.numpy")
    theirs = jnp.arange(3.0)
    ours = cr.from_dlpack(theirs)
    assert ours.numpy().ctypes.data == theirs.unsafe_buffer_pointer()
    assert (ours * 2).tolist() == [0, 2, 4]
    with pytest.raises(RuntimeError, match="the memory is read-only"):
        ours.mul_(2)
    assert jnp.from_dlpack(cr.ones(3)).tolist() == [1, 1, 1]


def test_read_only_memory_stays_so():
    a = np.ones(2)
    a.flags.writeable = False
    t = cr.from_dlpack(a)
    with pytest.raises(RuntimeError, match="the memory is read-only"):
        t[0] = 5
    assert not np.from_dlpack(t).flags.writeable
    assert not np.from_dlpack(cr.ones(1).expand(3)).flags.writeable
    with pytest.raises(BufferError, match="readonly"):
        t.__dlpack__()  # without max_version: the old protocol can't say it


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)], ids=str)
@pytest.mark.parametrize("dtype", ["bool", "uint16", "int64", "float16", "complex128"])
def test_every_shape_and_dtype(shape, dtype):
    x = cr.ones(shape, dtype=dtype)
    y = cr.from_dlpack(x)
    assert (y.shape, y.dtype) == (x.shape, x.dtype)
    assert y.equal(x)


def test_copies():
    a = np.zeros(2)
    copied, shared = cr.from_dlpack(a, copy=True), cr.from_dlpack(a, copy=False)
    a[0] = 1
    assert copied.tolist() == [0, 0]
    assert shared.tolist() == [1, 0]
    assert cr.from_dlpack(a, device="cpu").device == "cpu"
    assert np.from_dlpack(cr.zeros(2), copy=True).tolist() == [0, 0]


def test_no_gradient_leaves_silently():
    x = cr.ones(2, requires_grad=True)
    for export in (np.from_dlpack, cr.from_dlpack, lambda x: x.__dlpack__()):
        with pytest.raises(BufferError, match="Can't export tensors that require gradient, use"):
            export(x)
    with cr.no_grad(), pytest.raises(BufferError, match="require gradient"):
        np.from_dlpack(x)
    assert np.from_dlpack(x.detach()).tolist() == [1, 1]


def test_objects_without_dlpack_are_refused():
    with pytest.raises(TypeError, match=r"from_dlpack\(\): expected an array with __dlpack__, got"):
        cr.from_dlpack([1.0])


def test_an_exporter_of_the_old_protocol():
    class Old:
        def __dlpack__(self, *, stream=None):
            return np.arange(2.0).__dlpack__()

        def __dlpack_device__(self):
            return (1, 0)

    assert cr.from_dlpack(Old()).tolist() == [0, 1]


def test_devices():
    x = cr.ones(2, requires_grad=True)
    assert x.__dlpack_device__() == (1, 0)
    assert x.to_device("cpu") is x
    assert x.to_device(x.device) is x
    with pytest.raises(ValueError, match=r"to_device\(\): stream must be None"):
        x.to_device("cpu", stream=1)
