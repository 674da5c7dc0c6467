//! The kernels that are shipped, sampled: compiled, run on the virtual GPU with all hazard checks,
//! and compared with their references.
//!
//! Every space in `search_spaces/` takes part by being there. `TUNER_KERNELS_SAMPLE=N` draws N
//! pairs of each full space instead, `TUNER_KERNELS_SEED=S` others (the nightly form).

mod broken;
mod tensor_memory;
mod warp_group;

use crate::program::{root, tuner};

/// Pairs of (configuration, problem) drawn from a full space.
fn pairs(kernel: &str) -> usize {
    match kernel {
        "attention_f16" => 8,
        "attention_bf16" | "attention_f8" => 4,
        _ => 2,
    }
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Checks a space and returns what is wrong with it: one line a verdict that is not ok.
fn failures(name: &str, arguments: &[&str]) -> Vec<String> {
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = tuner(root());
    command
        .args(["check", &format!("search_spaces/{name}.yaml")])
        .args(arguments)
        .args(["--format", "json", "--jobs", &jobs.to_string()]);
    let output = command.output().expect("tuner runs");
    let story = String::from_utf8_lossy(&output.stderr);
    let Ok(rows) = serde_json::from_slice::<Vec<serde_json::Value>>(&output.stdout) else {
        return vec![format!("{name}: {story}")];
    };
    assert!(!rows.is_empty(), "{name}: {story}");
    rows.iter()
        .filter(|row| row["verdict"] != "ok")
        .map(|row| {
            format!(
                "{name}, {}: {}: {}\n  {}",
                row["problem"], row["verdict"], row["detail"], row["config"]
            )
        })
        .collect()
}

/// The spaces of the catalog: `name` for `name.yaml`, without the one to copy.
fn spaces() -> Vec<String> {
    let folder = root().join("search_spaces");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the catalog")
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            let stem = name.strip_suffix(".yaml")?;
            (!stem.starts_with('_')).then(|| stem.to_owned())
        })
        .collect();
    names.sort();
    names
}

#[test]
fn sampled_configurations_of_every_shipped_kernel_are_right_and_free_of_hazards() {
    let seed = number("TUNER_KERNELS_SEED").unwrap_or(1).to_string();
    let asked = number("TUNER_KERNELS_SAMPLE");
    let mut wrong = Vec::new();
    let spaces = spaces();
    assert!(spaces.iter().any(|name| name == "attention_f16"));
    for name in spaces {
        let sample = if name.ends_with(".quick") {
            2
        } else {
            asked.unwrap_or_else(|| pairs(&name))
        };
        let sample = sample.to_string();
        wrong.extend(failures(&name, &["--sample", &sample, "--seed", &seed]));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_shipped_kernel_has_a_page_a_quick_space_and_a_baseline_that_exists() {
    let project = root();
    let mut missing = Vec::new();
    for name in spaces().iter().filter(|name| !name.ends_with(".quick")) {
        let space = project.join(format!("search_spaces/{name}.yaml"));
        let text = std::fs::read_to_string(&space).expect("the space is read");
        let source = text
            .lines()
            .find_map(|line| line.strip_prefix("source: "))
            .expect("a source");
        let template = project.join("search_spaces").join(source.trim());
        let folder = template.parent().expect("a folder");
        let needed = [
            project.join(format!("search_spaces/{name}.quick.yaml")),
            folder.join("README.md"),
        ];
        missing.extend(needed.into_iter().filter(|path| !path.is_file()));
        if text.contains("baseline.py") && !folder.join("baseline.py").is_file() {
            missing.push(folder.join("baseline.py"));
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

/// Predictions of a kernel's configurations: of the default one and the seeds, or of `sample` drawn ones.
fn predicted(kernel: &str, gpu: &str, sample: Option<usize>) -> Vec<serde_json::Value> {
    let device = format!("vgpu:{gpu}");
    let mut command = assert_cmd::Command::from_std(tuner(root()));
    command.args(["predict", kernel, "--device", &device, "--format", "json"]);
    if let Some(count) = sample {
        let drawn = tuner(root())
            .args(["space", kernel, "--device", &device, "--format", "csv"])
            .args(["--sample", &count.to_string()])
            .output()
            .expect("tuner runs");
        command.args(["--configs", "-"]).write_stdin(drawn.stdout);
    }
    let output = command.output().expect("tuner runs");
    let rows = serde_json::from_slice(&output.stdout);
    rows.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

/// Machine code and PTX of the sampled block must leave the same memory, and where the assembler neither
/// merges nor splits loads, what is replayed asks for as many sectors as the PTX did.
#[test]
fn the_way_that_is_replayed_loads_what_was_executed() {
    let mut wrong = Vec::new();
    for (kernel, gpu) in [
        ("gemm_f32", "l4"),
        ("gemm_f32", "h100"),
        ("gemm_f16", "l4"),
        ("attention_f16", "l4"),
        ("reduce_sum", "l4"),
        ("layernorm", "a100"),
        ("softmax", "h100"),
    ] {
        let rows = predicted(kernel, gpu, None);
        assert!(!rows.is_empty());
        for row in &rows {
            let (config, reliability) = (&row["config"], &row["reliability"]);
            if reliability != "ok" {
                let detail = &row["detail"];
                wrong.push(format!(
                    "{kernel} on {gpu}: {reliability} {detail} {config}"
                ));
                continue;
            }
            let executed = row["global_load_sectors"].as_f64().expect("a count");
            let replayed = &row["metrics"]["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"];
            let loads = replayed.as_f64().expect("a count") / executed;
            // 16 x 8 x 16 multiply-adds an instruction.
            let flops = row["tensor_flops"].as_f64().expect("a count");
            let replayed = &row["metrics"]["sm__inst_executed_pipe_tensor.sum"];
            let tensor = replayed.as_f64().expect("a count") * 4096.0 / flops;
            let near = |ratio: f64| (0.9..=1.1).contains(&ratio);
            if !near(loads) || flops > 0.0 && !near(tensor) {
                wrong.push(format!(
                    "{kernel} on {gpu}: {loads:.2} {tensor:.2} {config}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every shipped kernel on a GPU of each generation: `PROOF_CONFIGS` configurations drawn of each (500
/// where it is not set) are executed as machine code and as PTX.
#[test]
#[ignore = "hours of compiling: cargo test --test program proof_of_every -- --ignored --nocapture"]
fn proof_of_every_shipped_kernel_on_every_generation() {
    let count = std::env::var("PROOF_CONFIGS").map_or(500, |n| n.parse().expect("a number"));
    let project = root();
    let spaces = std::fs::read_dir(project.join("search_spaces")).expect("the spaces");
    let mut kernels: Vec<String> = spaces
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter_map(|file| Some(file.strip_suffix(".yaml")?.to_owned()))
        .filter(|name| !name.contains('.') && !name.starts_with('_'))
        .collect();
    kernels.sort();
    let mut wrong = Vec::new();
    for kernel in &kernels {
        for gpu in ["rtx2080ti", "a100", "rtx3090", "l4", "h100"] {
            let rows = predicted(kernel, gpu, Some(count));
            let said = |row: &&serde_json::Value| {
                row["detail"]
                    .as_str()
                    .is_some_and(|d| d.contains("prediction not available"))
            };
            let refused: Vec<_> = rows.iter().filter(said).collect();
            println!(
                "{kernel} on {gpu}: {} of {} not proven",
                refused.len(),
                rows.len()
            );
            wrong.extend(
                refused
                    .iter()
                    .map(|row| format!("{kernel} on {gpu}: {}", row["detail"])),
            );
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
