"""The tunable names that choose the type of a scalar."""

import pytest

from tuner.kernel_tuner.signature import Parameter
from tuner.kernel_tuner.tunable_types import choosers

OTHER = "template <int B, class T> __device__ void f(T a);\n"
CHOICE = "typedef double real;\n#else\ntypedef float real;\n#endif\n"


@pytest.mark.parametrize(
    ("declared", "source", "kernel", "found"),
    [
        ("real a", "", "k", {"real"}),
        ("int n", "template <int B> __global__ void k(int n) {}", "k<block>", set()),
        ("unsigned n", "template <unsigned, unsigned B> __global__ void k(unsigned n) {}", "k<block, 2>", set()),
        # Template parameters by place: those of other templates do not count.
        ("T a", "template <typename T, int B> __global__ void k(T a) {}", "k<float, block>", set()),
        ("T a", "template <typename T, int B> __global__ void k(T a) {}", "n::k<Pair<int, real>, 2>", {"real"}),
        ("T a", OTHER + "template <class T, int B> __global__ void k(T a) {}", "k<float, block>", set()),
        ("U a", "template <class T, class U = Other<T>> __global__ void k(U a) {}", "k<real>", {"real"}),
        ("T a", "template <class... T> __global__ void k(T... a) {}", "k<int, real>", {"real"}),
        ("T a", "template <int B, If<(B > 2), int> = 0, class T = float> __global__ void k(T a) {}", "k<4, 0, real>", {"real"}),
        ("Vector<N> a", "template <int N> __global__ void k(Vector<N> a) {}", "k<block>", set()),
        # Macros and aliases.
        ("number a", "#define number real\n", "k", {"real"}),
        ("number a", "using number = std::conditional_t<block == 1, float, double>;\n", "k", {"block"}),
        ("T a", "typedef real *T;\ntypedef real number;\n template <class T> __global__ void k(T a) {}", "k<number>", {"real"}),
        # Definitions that conditions choose.
        ("real_t a", "#ifdef FAST\n" + CHOICE.replace("real", "real_t"), "k", set()),
        ("real_t a", "#ifdef block\n" + CHOICE.replace("real", "real_t"), "k", set()),
        ("real_t a", "#if block > 64\n" + CHOICE.replace("real", "real_t"), "k", {"block"}),
        ("real_t a", "#if WIDE\n" + CHOICE.replace("real", "real_t") + "#define WIDE (block > 2)\n", "k", {"block"}),
        ("real_t a", "#if block > 64\n" + CHOICE.replace("real", "real_t").replace("double", "float"), "k", set()),
        ("real_t a", "#if block > 64\n#endif\n#ifdef FAST\n" + CHOICE.replace("real", "real_t"), "k", set()),
    ],
)  # fmt: skip
def test_names_that_choose_a_type(declared, source, kernel, found):
    parameter = Parameter(declared.split()[-1], declared, False, False, False)
    assert choosers(parameter, source, kernel, numbers=False) & {"real", "block"} == found


def test_numbers_of_a_template_may_choose_a_type():
    parameter = Parameter("a", "std::conditional_t<D, double, float> a", False, False, False)
    source = "template <bool D> __global__ void k(std::conditional_t<D, double, float> a) {}"
    assert "wide" in choosers(parameter, source, "k<wide>", numbers=True)
