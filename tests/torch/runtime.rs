//! Runtime of a package: expressions, scalars and compiler options, without PyTorch and without a GPU.

use crate::program::{ended, folder, root};
use std::process::Command;

/// Builds kernels from data, with names in the place of PyTorch's types.
const CHECKS: &str = r#"
import importlib.util, sys, types
class Stub(types.ModuleType):
    def __getattr__(self, name):
        return name
sys.modules["torch"] = Stub("torch")
spec = importlib.util.spec_from_file_location("runtime", sys.argv[1])
runtime = importlib.util.module_from_spec(spec)
spec.loader.exec_module(runtime)

def kernel(**changes):
    x = {"name": "x", "python": "x", "type": "f32", "role": "input", "shape": ["N", "HALF"], "value": None, "free": False, "schema": None, "map": None}
    torch = {
        "source": {"text": "", "headers": []}, "options": [], "features": ["", 0], "arguments": [x], "sizes": ["N"],
        "macro_sizes": [], "exact_sizes": [], "free_sizes": {}, "derived": [["HALF", "N // 2"]], "constraints": [],
        "launches": [], "images": [], "fallback": None, **changes,
    }
    entry = {"device": "gpu", "cc": 80, "sizes": {"N": 64}, "config": {"BLOCK": 64, "FAST": True}, "constants": {}}
    return runtime.Kernel({"kernel": "k", "entries": [entry], "torch": torch})

def refused(call, error):
    try:
        call()
    except error as why:
        return str(why)
    raise AssertionError("not refused")
"#;

fn check(body: &str) {
    let folder = folder(&[("check.py", &format!("{CHECKS}{body}"))]);
    let mut python = Command::new("python3");
    python
        .arg("check.py")
        .arg(root().join("crates/report/src/export/torch/runtime.py"))
        .current_dir(folder.path())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let ended = ended(&mut python);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[test]
fn every_function_of_search_spaces_has_a_value() {
    check(
        r#"
values = {
    "abs(-N)": 64, "bool(N)": True, "ceil(N / 7)": 10, "ceil_div(N, 7)": 10, "float(N)": 64.0, "floor(N / 7)": 9,
    "int(N / 7)": 9, "len([N, 1])": 2, "log2(N)": 6.0, "max(N, 3)": 64, "min([N, 3])": 3, "pow(N, 2)": 4096,
    "round(N / 7)": 9, "round(N / 7, 1)": 9.1, "sqrt(N)": 8.0, "math.ceil(N / 7)": 10, "math.log2(N)": 6.0, "-N // 7": -10, "-N % 7": 6,
}
for text, value in values.items():
    assert kernel().value(text, {"N": 64}) == value, text
for text in ("os.getcwd()", "math.exp(N)", "math.ceil.x(N)", "(lambda: 1)()", "[x for x in [1]]", "open('x')"):
    assert "not an expression" in refused(lambda: runtime.Expression(text), ValueError), text
"#,
    );
}

#[test]
fn what_has_no_value_for_some_sizes_excludes_only_what_needs_it() {
    check(
        r#"
one = kernel(derived=[["PART", "N // (BLOCK - 64)"], ["ROOT", "sqrt(1 - N)"]], constraints=["N < 2 or BLOCK > 1"])
variant, names = one.choose("gpu", 80, {"N": 64})
assert "PART" not in names and "ROOT" not in names
assert kernel(derived=[["PART", "N // (BLOCK - 64)"]], constraints=["PART > 1"]).choose("gpu", 80, {"N": 64}) is None
assert "`N // 0` has no value for these sizes" in refused(lambda: one.value("N // 0", names), ValueError)
"#,
    );
}

#[test]
fn a_scalar_outside_its_type_is_refused() {
    check(
        r#"
def scalar(type):
    return {"name": "n", "python": "n", "type": type}
one = kernel()
assert one.passed(scalar("i16"), 32767).value == 32767 and one.passed(scalar("u64"), 2**64 - 1).value == 2**64 - 1
assert one.passed(scalar("i32"), 8.0).value == 8
for type, value in [("i16", 32768), ("u8", -1), ("i32", 2**31), ("i32", 2.5)]:
    assert refused(lambda: one.passed(scalar(type), value), ValueError) == f"k: `n` is {value}, which {type} cannot hold"
"#,
    );
}

#[test]
fn options_and_target_are_those_of_the_search_space() {
    check(
        r#"
one = kernel(options=["-DB={BLOCK}", "-DF={FAST}", "-std=c++20"], features=["a", 90])
assert runtime.compile_options(one, one.variants[0].config) == ["-DB=64", "-DF=1", "-std=c++20"]
assert runtime.compile_options(kernel(), {}) == ["--std=c++17"]
assert one.target("80") == "sm_80" and one.target("90") == "sm_90a" and one.target("100") == "sm_100a"
assert kernel().target("90") == "sm_90"
"#,
    );
}
