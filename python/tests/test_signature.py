"""Parameters of kernel functions, and the pointers that a kernel may write through."""

import pytest

from tuner.kernel_tuner import signature


def written(parameters, body, extra=""):
    source = f"{extra}\n__global__ void k({parameters}) {{ {body} }}"
    return [each.name for each in signature.parameters_of(source, "k") if each.written]


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("a[i] = b[i];", ["a"]),
        ("a[i] += b[i] == c[i];", ["a"]),
        ("a[i++] = 1; b[j]++; --c[j];", ["a", "b", "c"]),
        ("*a = b[0];", ["a"]),
        ("atomicAdd(&a[i], b[i]);", ["a"]),
        ("atomicAdd(a + i, b[i]);", ["a"]),
        ("f(a, b[i]);", ["a"]),
        ("float *p = a; x = b[i];", ["a"]),
        ("a[i].x = b[i].y; float t = c[i].x;", ["a"]),
        ("((float4 *)a)[i] = z;", ["a"]),
        ("a[b[i]] = __ldg(b + i) + LOAD(c, i);", ["a"]),
        ("STORE(a, i) = b[i];", ["a"]),
        ("(a[i]) = b[i]; x = (b[i]) * 2; ++(c[i]);", ["a", "c"]),
        ("float& r = a[i]; const float& s = b[i]; auto &&t{c[i]};", ["a", "c"]),
        ("put(a[i], f(b[i]) + c[i]); swap(b[i], x); read(c[i]);", ["a", "b"]),
        ("SET(a[i], b[i]); x = MOST(b[i], c[i]);", ["a"]),
        ("FILL(a, i); x = LONG_LOAD(b, i);", ["a"]),
        ("AT(a, i) = b[i]; x = AT(b, i) + AT(c, i);", ["a"]),
        ("AT(a, i).x = 1; f(&AT(b, i), 1); AT(c, i)++;", ["a", "b", "c"]),
        ("auto h = [](float& x) { x = 1; }; h(a[i]); Set()(b[i]); cuda::atomic_ref<float> r(c[i]);", ["a", "b", "c"]),
        ("a[i].set(x); b[j].at.set<1>(x); y = c[i].x;", ["a", "b"]),
        ("x = sqrtf(a[i]) + float(b[i]) + __expf(c[i]); y = make_float2(a[i], fmaxf(b[i], c[i]));", []),
        ("if (a[i]) x = static_cast<float>(b[i]); while (c[i] > 0) return;", []),
        ("y = m & g(a[i]); x = max(a[i], b[i]); if (m == c[i]) x = 1;", []),
        ("x = a[i] <= b[i] && c[i] >= 1 || a[i] != 2;", []),
        ("/* a[i] = 1; */ x = b[i]; // b[i] = 2", []),
    ],
)
def test_pointers_that_are_written(body, names):
    macros = "#define LOAD(x, y) __ldg(x+y)\n#define STORE(x, y) x[y]" if "STORE" not in body else "#define STORE(x, y) *(x + y)&"
    macros += "\n#define SET(x, y) (x) = (y)\n#define MOST(x, y) ((x) >= (y) ? (x) : (y))\n"
    macros += "#define FILL(x, y) \\\n  *(x + y) = 1\n#define LONG_LOAD(x, y) \\\n  __ldg(x + y)\n"
    macros += "#define AT(x, y) x[y]\nfloat f(const float *x, float y) { return y; }\nfloat g(float x) { return x; }\n"
    macros += "template <class T> void put(T& x, float y) { x = y; }\nfloat read(const float& x) { return x; }\n"
    found = written("float *a, float *__restrict__ b, float* c, int n", body, macros)
    assert found == names


def test_constant_pointers_scalars_and_templates():
    source = """
    template <typename T, int N> __global__ void __launch_bounds__(128, 2)
    other(const T *a, T b[], T const * __restrict__ c, int, const int n = 3);
    namespace x { template <typename T, int N> __global__ void k(const T *a, T *b, int n) { b[n] = a[0]; } }
    """
    found = signature.parameters_of(source, "x::k<float, 3>")
    assert [(each.name, each.pointer, each.constant, each.written) for each in found] == [
        ("a", True, True, False), ("b", True, False, True), ("n", False, False, False)
    ]  # fmt: skip
    assert [each.pointer for each in signature.parameters_of(source, "other")] == [True, True, True, False, False]
    assert signature.parameters_of("__global__ void none() {}", "none") == []


def test_a_kernel_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(ValueError, match="`k` is not in the source: it defines a, b"):
        signature.parameters_of("__global__ void a(int n) {}\n__global__ void b() {}", "k")
    with pytest.raises(ValueError, match="defines no `__global__` function"):
        signature.parameters_of("void k() {}", "k")


def test_an_instantiation_is_no_definition():
    source = "template <typename T> __global__ void k(T *a, T b) { *a = b; }\ntemplate __global__ void k(float *, float);"
    assert [each.text for each in signature.parameters_of(source, "k<float>")] == ["T *a", "T b"]
    # A comparison in parentheses is no bracket.
    assert signature.split_top("int N, If<(N > 0), int> = 0, class T") == ["int N", " If<(N > 0), int> = 0", " class T"]
