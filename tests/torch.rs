//! `tuner export --torch`: the package's choice against the tuner's own, and its tests with PyTorch.

mod includes;
mod runtime;

use crate::program::{ended, folder, root, tuner};
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use tuner_core::record::ConfigValues;
use tuner_core::value::Value;
use tuner_device::limits;
use tuner_kernel::catalog::Kernel;
use tuner_space::{Config, Problem};

/// Calls the runtime without PyTorch: a line of sizes in, the variant and its launches out.
const PROBE: &str = r#"
import importlib.util, json, sys, types
class Stub(types.ModuleType):
    def __getattr__(self, name):
        return name
sys.modules["torch"] = Stub("torch")
spec = importlib.util.spec_from_file_location("runtime", sys.argv[1] + "/_runtime.py")
runtime = importlib.util.module_from_spec(spec)
spec.loader.exec_module(runtime)
kernel = runtime.Kernel(json.load(open(sys.argv[1] + "/kernel.json")))
for line in sys.stdin:
    chosen = kernel.choose("vgpu:a100", 80, json.loads(line))
    if chosen is None:
        print("null")
        continue
    variant, names = chosen
    plan = [[*one["grid"], *one["block"], one["shared"]] for one in kernel.plan(names)]
    print(json.dumps({"variant": kernel.variants.index(variant), "plan": plan}))
"#;

/// Tunes a quick space a little and exports its package; returns the package's own folder.
fn package(at: &Path, kernel: &str) -> PathBuf {
    let space = root().join(format!("search_spaces/{kernel}.quick.yaml"));
    let space = space.to_str().unwrap();
    let run = "run --evals 6 --device vgpu:a100 --db t.db";
    ended(tuner(at).args(run.split(' ')).arg(space)).says(0, &[]);
    let export = "export --torch --allow-predicted --allow-uncompared --db t.db -o";
    ended(tuner(at).args(export.split(' ')).args([kernel, space])).says(0, &[]);
    at.join(kernel)
}

/// Sizes as the tuner has them, in the order of the kernel.
fn sizes(kernel: &Kernel, shape: &Json) -> ConfigValues {
    let own = &kernel.spec.problems[0].sizes;
    let value = |name: &str| Value::Int(shape[name].as_i64().unwrap());
    own.iter()
        .map(|(name, _)| (name.clone(), value(name)))
        .collect()
}

/// The tuner's launches for an entry on sizes; `None` where a rule does not hold.
fn own_plan(kernel: &Kernel, config: &Json, sizes: &ConfigValues) -> Option<Json> {
    let limits = limits::by_name("a100").unwrap();
    let mut spec = kernel.spec.clone();
    spec.problems.push(Problem {
        name: "asked".to_owned(),
        sizes: sizes.clone(),
        weight: None,
    });
    let values: ConfigValues =
        serde_json::from_value::<std::collections::BTreeMap<String, Value>>(config.clone())
            .unwrap()
            .into_iter()
            .collect();
    let space = {
        let mut free = spec.clone();
        free.constraints.clear();
        free.space("asked", &limits).unwrap()
    };
    let config: Config = space.config_from_values(&values).unwrap();
    let binder = spec.binder("asked", &limits).unwrap();
    if !binder.holds(&config) {
        return None;
    }
    let bound = binder.bind(&config).unwrap();
    let launches = bound.launches.iter().map(|launch| {
        let extents = launch.grid.iter().chain(&launch.block);
        let mut line: Vec<u64> = extents.map(|extent| u64::from(*extent)).collect();
        line.push(u64::from(launch.shared_bytes));
        line
    });
    Some(json!(launches.collect::<Vec<_>>()))
}

#[test]
fn the_package_chooses_and_launches_what_the_tuner_would() {
    use std::io::Write as _;
    let at = folder(&[]);
    for (name, shapes) in [
        (
            "softmax",
            (0..60)
                .map(|i| json!({ "R": 1 + i % 7, "N": 8 * (1 + i * 13 % 300) }))
                .collect::<Vec<_>>(),
        ),
        (
            "attention_f16",
            (0..40)
                .map(|i| json!({ "B": 1, "H": 1 + i % 3, "S": 1 + 17 * i, "T": 16 + 31 * i, "D": 64, "CAUSAL": i % 2 }))
                .collect(),
        ),
    ] {
        let package = package(at.path(), name).join(format!("{name}_torch"));
        let data = std::fs::read_to_string(package.join("kernel.json")).unwrap();
        let data: Json = serde_json::from_str(&data).unwrap();
        let probe = at.path().join("probe.py");
        std::fs::write(&probe, PROBE).unwrap();
        let mut child = Command::new("python3")
            .args([&probe, &package])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let lines: Vec<String> = shapes.iter().map(ToString::to_string).collect();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let answers = String::from_utf8(output.stdout).unwrap();
        let answers: Vec<Json> = answers
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(answers.len(), shapes.len());
        let kernel = root().join(format!("search_spaces/{name}.quick.yaml"));
        let kernel = Kernel::load_in(&kernel, root()).unwrap();
        let mut launched = 0;
        for (shape, answer) in shapes.iter().zip(&answers) {
            let sizes = sizes(&kernel, shape);
            let entries = data["entries"].as_array().unwrap();
            assert_eq!(entries.len(), 1, "one timed problem in the quick space");
            // Flags must be those of the entry.
            let flags = |shape: &Json| shape.get("CAUSAL").cloned().unwrap_or_default();
            let own = (flags(shape) == flags(&entries[0]["sizes"]))
                .then(|| own_plan(&kernel, &entries[0]["config"], &sizes))
                .flatten();
            assert_eq!(answer["plan"], own.clone().unwrap_or_default(), "{name} {shape}");
            launched += usize::from(own.is_some());
        }
        assert!(launched >= 10, "{name}: {launched} shapes were launched");
    }
}

#[test]
fn text_of_files_is_data_and_a_foreign_expression_is_refused() {
    let at = folder(&[]);
    let package = package(at.path(), "softmax");
    let module = std::fs::read_to_string(package.join("softmax_torch/__init__.py")).unwrap();
    assert!(!module.contains("vgpu:a100") && module.contains("\"softmax_torch\", \"softmax\""));
    let data = std::fs::read_to_string(package.join("softmax_torch/kernel.json")).unwrap();
    let hostile = data.replacen(
        "\"derived\": [",
        "\"derived\": [[\"X\", \"__import__('os').getcwd()\"],",
        1,
    );
    assert_ne!(hostile, data);
    std::fs::write(package.join("softmax_torch/kernel.json"), hostile).unwrap();
    let probe = at.path().join("probe.py");
    std::fs::write(&probe, PROBE).unwrap();
    let mut command = Command::new("python3");
    let ended = ended(command.arg(&probe).arg(package.join("softmax_torch")));
    assert!(
        ended
            .stderr
            .contains("is not an expression of a search space"),
        "{}",
        ended.stderr
    );
    let wrong = [
        ("--torch -o x --to json", "leave out --to"),
        ("--torch", "--output"),
        ("--torch -o x --launcher cpp", "cannot be used with"),
    ];
    for (more, why) in wrong {
        let line = format!("export softmax --db t.db {more}");
        let ended = crate::program::run(at.path(), &line);
        ended.says(2, &[why]);
    }
}

/// The Python that has PyTorch.
pub(crate) fn python() -> PathBuf {
    let named = std::env::var_os("TUNER_TORCH_PYTHON").map(PathBuf::from);
    named.unwrap_or_else(|| root().join(".torch/bin/python"))
}

#[test]
#[cfg_attr(not(torch), ignore = "PyTorch is not installed (scripts/get-torch)")]
fn the_tests_of_packages_pass_with_pytorch() {
    let at = folder(&[]);
    for kernel in ["softmax", "attention_f16", "gemm_f16"] {
        let package = package(at.path(), kernel);
        let mut pytest = Command::new(python());
        pytest
            .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"])
            .current_dir(&package)
            .env("PYTHONPATH", &package)
            .env("PYTHONDONTWRITEBYTECODE", "1");
        let ended = ended(&mut pytest);
        assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
        // Without a GPU all but the launch.
        let passed = ["7 passed, 1 skipped", "8 passed"];
        let passed = passed.iter().any(|line| ended.stdout.contains(line));
        assert!(passed, "{}", ended.stdout);
    }
}
