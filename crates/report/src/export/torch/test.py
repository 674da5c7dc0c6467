"""Tests of the exported package: python -m pytest."""

import math

import pytest
import torch

import @PACKAGE@ as package
from @PACKAGE@._runtime import with_values

KERNEL = package.kernel


def tensors(sizes, device):
    """Random inputs of these sizes."""
    generator = torch.Generator().manual_seed(1)
    made = []
    for one in KERNEL.inputs:
        extents = shape(one, sizes)
        dtype = package.DTYPES[one["type"]]
        if dtype.is_floating_point:
            made.append(torch.randn(extents, generator=generator).to(dtype).to(device))
        else:
            made.append(torch.randint(0, 2, extents, generator=generator).to(dtype).to(device))
    free = [1 for _ in KERNEL.scalars]
    return [*made, *free, *(sizes[name] for name in KERNEL.free)]


def small(variant):
    """Sizes of a variant, the even ones halved until the inputs are small; flags stay."""
    sizes = dict(variant.sizes)
    elements = lambda: sum(math.prod(shape(one, sizes)) for one in KERNEL.inputs)
    while elements() > 1 << 18:
        even = [name for name, size in sizes.items() if isinstance(size, int) and size > 2 and size % 2 == 0]
        if not even:
            break
        sizes[max(even, key=sizes.get)] //= 2
    return sizes


def shape(one, sizes):
    return [KERNEL.value(text, with_values(dict(sizes), KERNEL.shape_derived)) for text in one["shape"]]


def results(made):
    return list(made) if isinstance(made, tuple) else [made]


def test_fake_has_the_shape_of_the_result():
    from torch._subclasses.fake_tensor import FakeTensorMode

    arguments = tensors(small(KERNEL.variants[0]), "cpu")
    with FakeTensorMode() as mode:
        fakes = [mode.from_tensor(one) if isinstance(one, torch.Tensor) else one for one in arguments]
        result = package.op(*fakes)
    sizes = KERNEL.sizes(tuple(arguments))
    for one, made in zip(KERNEL.outputs, results(result)):
        assert list(made.shape) == shape(one, sizes)
        assert made.dtype == package.DTYPES[one["type"]]


def test_code_of_one_architecture_is_compiled_for_it():
    from @PACKAGE@._runtime import compiled_for

    def compiled(target, message="Instruction 'wgmma.fence' not supported on .target 'sm_90'"):
        if not target.endswith("a"):
            raise RuntimeError(message)
        return target

    assert compiled_for("sm_90", compiled) == "sm_90a"
    with pytest.raises(RuntimeError, match="expected a semicolon"):
        compiled_for("sm_90", lambda target: compiled(target, "expected a semicolon"))


def test_a_wrong_dtype_is_refused():
    arguments = tensors(small(KERNEL.variants[0]), "meta")
    arguments[0] = arguments[0].to(torch.complex64)
    with pytest.raises(TypeError, match="is needed"):
        package.op(*arguments)


def test_the_fallback_computes_on_the_cpu():
    arguments = tensors(small(KERNEL.variants[0]), "cpu")
    if KERNEL.fallback_text is None:
        with pytest.raises(NotImplementedError, match="names no fallback"):
            package.op(*arguments)
    else:
        for one, made in zip(KERNEL.outputs, results(package.op(*arguments))):
            assert list(made.shape) == shape(one, KERNEL.sizes(tuple(arguments)))
            assert made.dtype == package.DTYPES[one["type"]]


def test_pytorch_accepts_the_op():
    if KERNEL.fallback_text is None:
        pytest.skip("the search space names no fallback, and there is no kernel on the CPU")
    arguments = tensors(small(KERNEL.variants[0]), "cpu")
    torch.library.opcheck(package.op.default, tuple(arguments), test_utils=("test_schema", "test_faketensor"))


def test_inputs_that_require_gradients():
    arguments = tensors(small(KERNEL.variants[0]), "cpu")
    if not arguments[0].dtype.is_floating_point:
        pytest.skip("the first input is not of floating point")
    arguments[0].requires_grad_()
    if KERNEL.fallback_text is None:
        with pytest.raises(RuntimeError, match="has no gradient"):
            package.op(*arguments)
    else:
        sum(made.float().sum() for made in results(package.op(*arguments)) if made.requires_grad).backward()
        assert arguments[0].grad is not None


def test_compiled_without_a_graph_break():
    arguments = tensors(small(KERNEL.variants[0]), "cpu")
    if KERNEL.fallback_text is None:
        pytest.skip("the search space names no fallback, and there is no kernel on the CPU")
    compiled = torch.compile(lambda *all: package.op(*all), backend="aot_eager", fullgraph=True)
    for made, expected in zip(results(compiled(*arguments)), results(package.op(*arguments))):
        torch.testing.assert_close(made.double(), expected.double())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("number", range(len(KERNEL.variants)))
def test_the_kernel_computes_what_pytorch_does(number):
    if KERNEL.fallback_text is None:
        pytest.skip("the search space names no fallback to compare with")
    arguments = tensors(KERNEL.variants[number].sizes, "cuda")
    for made, expected in zip(results(package.op(*arguments)), results(KERNEL.fallback(*arguments))):
        torch.testing.assert_close(made.double(), expected.double(), rtol=2e-2, atol=2e-3)
