//! The readers, each with files to start from.
#![allow(non_upper_case_globals, reason = "a target has the name of its test")]

use super::{Target, messages, stored};
use std::path::{Path, PathBuf};
use tuner_core::value::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files of a folder with that ending.
fn files(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(root().join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Runs the reader on what is text.
fn text(bytes: &[u8], read: impl FnOnce(&str)) {
    read(&String::from_utf8_lossy(bytes));
}

/// What is refused is refused in words.
fn said<T>(result: Result<T, impl std::fmt::Display>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            assert!(
                !error.to_string().trim().is_empty(),
                "a refusal without words"
            );
            None
        }
    }
}

const YAML_WORDS: &[&str] = &[
    "values: ",
    "range: { from: 1, to: 9223372036854775807, step: 1 }",
    "default: ",
    "rule: ",
    "why: ",
    "derived:\n",
    "constraints:\n",
    "arguments:\n",
    "launches:\n",
    "problems:\n",
    "gate:\n",
    "<<: ",
    "!!binary ",
    "? ",
    "- - - - ",
    "|\n",
    ">-\n",
    "---\n",
    "%YAML 1.2\n",
    "fill: { normal: { std: -1 } }",
];

pub(super) static search_space: Target = Target {
    name: "search_space",
    corpus: || files("search_spaces", ".yaml"),
    words: YAML_WORDS,
    inputs: 1200,
    read: |bytes| {
        text(bytes, |text| {
            said(tuner_space::KernelSpec::parse(text, Path::new("fuzz.yaml")));
        });
    },
};

pub(super) static bare_space: Target = Target {
    name: "bare_space",
    corpus: || {
        texts(&[
            "parameters:\n  A: { values: [1, 2, 4, 8] }\n  B: { range: { from: 0, to: 30, step: 3 } }\n\
             constraints:\n  - { rule: \"A * B <= 64 and A != B\", why: fits }\n",
            "parameters:\n  A: { values: [1.5, 2, \"x\", true] }\nderived:\n  C: \"A\"\n\
             constraints:\n  - { rule: \"C in [1.5, 2]\", why: some }\n",
        ])
    },
    words: YAML_WORDS,
    inputs: 8000,
    read: |bytes| {
        text(bytes, |text| {
            // Building takes memory and time by what the file asks for; the limits must hold.
            if let Some(bare) = said(tuner_space::BareSpace::parse(text, Path::new("fuzz.yaml"))) {
                said(bare.space());
            }
        });
    },
};

pub(super) static expression: Target = Target {
    name: "expression",
    corpus: || {
        texts(&[
            "2 * (D + PAD) * (BM + 2 * STAGES * BN)",
            "BM % 16 == 0 and (BN in [16, 32, 64] or not STAGES > 1)",
            "ceil_div(S, BM) * max(1, min(BN, 3)) ** 2 // 7 % 5",
            "1 < BM <= 128 != BN",
            "abs(-BM) + sqrt(D) - log2(8) / int(2.5)",
        ])
    },
    words: &[
        "**",
        "//",
        " and ",
        " or ",
        " not ",
        " in ",
        "((((((((",
        "ceil_div(",
        "max(",
        "log2(0)",
        "sqrt(-1)",
        "BM",
        "D",
        "<=",
        "!=",
    ],
    inputs: 15000,
    read: |bytes| {
        text(bytes, |text| {
            let names: Vec<(String, Value)> = ["BM", "BN", "D", "S", "PAD", "STAGES"]
                .into_iter()
                .zip([64, 32, 128, 512, 8, 2])
                .map(|(name, value)| (name.to_owned(), Value::Int(value)))
                .collect();
            if let Some(parsed) = said(tuner_space::Expr::parse(text)) {
                said(parsed.evaluate(&names));
            }
        });
    },
};

pub(super) static recording: Target = Target {
    name: "recording",
    corpus: || {
        let mut all = files("tests/golden/snapshots", "t4.snap.json");
        all.push(crate::faults::recording().into_bytes());
        all
    },
    words: &[
        "\"time\": ",
        "\"constraints\": [\"A < B\"], ",
        "\"tune_params\": {}, ",
        "null",
        "\"cache\": {}",
        "\"InvalidConfig\"",
        "\"times\": [], ",
        "\"results\": [",
    ],
    inputs: 3000,
    read: |bytes| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fuzz.json");
        std::fs::write(&path, bytes).unwrap();
        said(tuner_device::replay::Recording::load(&path));
    },
};

pub(super) static kernel_tuner_problem: Target = Target {
    name: "kernel_tuner_problem",
    corpus: || {
        texts(&[
            r#"{"ConfigurationSpace": {"TuningParameters": [{"Name": "A", "Type": "int",
                "Values": "[1, 2, 4]", "Default": 1}, {"Name": "B", "Type": "int",
                "Values": "[8, 16]", "Default": 8}],
                "Conditions": [{"Expression": "A * B <= 32", "Parameters": ["A", "B"]}]},
                "KernelSpecification": {"Language": "CUDA", "KernelName": "k"}}"#,
            r#"{"params": {"A": [1, 2], "B": ["x", "y"]}, "constraints": ["A == 1 or B == 'x'"]}"#,
        ])
    },
    words: &[
        "\"Values\": \"list(range(",
        "\"Expression\": ",
        "\"Conditions\": [",
        "\"Type\": \"float\"",
    ],
    inputs: 10000,
    read: |bytes| {
        text(bytes, |text| {
            if let Some(bare) = said(tuner_space::BareSpace::parse(text, Path::new("fuzz.json"))) {
                said(bare.space());
            }
        });
    },
};

pub(super) static ptx: Target = Target {
    name: "ptx",
    corpus: || {
        let mut all = files("crates/gpu/vgpu/benches", ".ptx");
        all.extend(files("crates/gpu/vgpu/tests/ptx", ".ptx"));
        all.extend(files("crates/gpu/model/tests/model", ".ptx"));
        all
    },
    words: &[
        ".reg .b32 %r<4294967295>;",
        ".shared .align 16 .b8 s[99999999999];",
        "bra $L__BB0_1;",
        "ret;",
        "@%p1 ",
        "ld.global.v4.f32 ",
        ".loc 1 ",
        ".visible .entry ",
        ".param .u64 ",
        "wgmma.",
        "mma.sync.",
    ],
    inputs: 5000,
    read: |bytes| {
        text(bytes, |text| {
            said(vgpu::Module::load(text));
        });
    },
};

pub(super) static cubin: Target = Target {
    name: "cubin",
    corpus: || files("crates/gpu/model/tests/model", ".cubin"),
    words: &["\x7fELF", ".text.", ".debug_line", "\u{1}\u{0}\u{0}\u{0}"],
    inputs: 10000,
    read: |bytes| {
        said(sass_machine::Machine::load(bytes, "unrolled").map_err(|error| format!("{error:?}")));
    },
};

pub(super) static shipped_header: Target = Target {
    name: "shipped_header",
    corpus: || files("tests/golden/snapshots", ".snap.h"),
    words: &[
        "/*",
        "*/",
        "#define ",
        "#if ",
        "static_assert(",
        "\\\n",
        "{ ",
    ],
    inputs: 15000,
    read: |bytes| {
        text(bytes, |text| {
            said(tuner_report::export::read_shipped(text, "fuzz.h"));
        });
    },
};

pub(super) static run_request: Target = Target {
    name: "run_request",
    corpus: || {
        texts(&[
            r#"{"kernels": ["gemm_f16"], "device": "vgpu:l4", "evals": 20, "budget": "1h30m",
                "seed": 3, "strategy": "evolve", "jobs": 4, "problems": ["square"]}"#,
            r#"{"device": "replay:a.json.gz", "evals": 1}"#,
        ])
    },
    words: &[
        "\"budget\": \"",
        "\"device\": \"cuda:0,1\"",
        "\"jobs\": ",
        "99999999999d",
        "1e400s",
    ],
    inputs: 15000,
    read: |bytes| {
        let request = serde_json::from_slice::<tuner_engine::job::Request>(bytes);
        if let Some(request) = said(request) {
            said(request.selector());
            said(request.limits());
            said(request.strategy());
        }
    },
};

pub(super) static compiler_log: Target = Target {
    name: "compiler_log",
    corpus: || {
        texts(&[
            "ptxas info    : 0 bytes gmem\nptxas info    : Compiling entry function 'k' for 'sm_90'\n\
            ptxas info    : Function properties for k\n    0 bytes stack frame, 8 bytes spill stores, 8 \
            bytes spill loads\nptxas info    : Used 32 registers, used 1 barriers, 384 bytes smem, 368 \
            bytes cmem[0]\n",
        ])
    },
    words: &[
        "ptxas info",
        "Used ",
        " registers",
        "bytes smem",
        "Function properties for ",
    ],
    inputs: 12000,
    read: |bytes| {
        text(bytes, |text| {
            let _ = tuner_kernel::compile::parse_log(text);
            let _ = tuner_kernel::compile::included_names(text);
        });
    },
};

pub(super) static packed_file: Target = Target {
    name: "packed_file",
    corpus: || files("tests/data/recorded", ".gz"),
    words: &["\u{1f}", "\u{8b}"],
    inputs: 500,
    read: |bytes| {
        said(tuner_core::files::unpack(bytes.to_vec(), 64 << 20));
    },
};

/// A reader of a table of text.
macro_rules! tables {
    ($($name:ident: $words:expr => $read:expr,)+) => {$(
        pub(super) static $name: Target = Target {
            name: stringify!($name),
            corpus: || stored("corpus", stringify!($name)),
            words: $words,
            inputs: 3000,
            read: |bytes| text(bytes, |text| {
                said($read(text));
            }),
        };
    )+};
}

tables! {
    profiler_table: &[",", "\"", "\"\"", "\n", "Runtime", "success", "passed", "1e308", "-0"]
        => tuner_cli::readers::profiler_table,
    profile: &[",", "\"", "==", "\"ID\"", "gpu__time_duration.sum", "nan", "1e308", "\n"]
        => tuner_cli::readers::profile_table,
    configuration_table: &[",", "\"", "A", "B", "\n", "\u{feff}", "1.5", "true", " "]
        => read_configurations,
}

/// Reads configurations of a small space, strictly and not.
fn read_configurations(text: &str) -> Result<usize, String> {
    let space = "parameters:\n  A: { values: [1, 2, 4] }\n  B: { values: [8, 16] }\n";
    let space = tuner_space::BareSpace::parse(space, Path::new("fuzz.yaml")).unwrap();
    let space = space.space().unwrap();
    let strict = tuner_cli::readers::configuration_table(text, &space, true);
    tuner_cli::readers::configuration_table(text, &space, false).and(strict)
}

pub(super) static fleet_message: Target = Target {
    name: "fleet_message",
    corpus: messages::fleet,
    words: &[
        "\"protocol\": 2",
        "\"answer\": ",
        "\"judged\": {}",
        "\"leaving\"",
        "\u{81}",
        "\u{dd}",
        "null",
        "1e-300",
    ],
    inputs: 20000,
    read: messages::read_fleet,
};

pub(super) static process_message: Target = Target {
    name: "process_message",
    corpus: messages::process,
    words: &[
        "TNF1",
        "\"judge\"",
        "{\"examine\": ",
        "\u{0}\u{0}\u{0}\u{0}",
        "{\"open\": {}}",
    ],
    inputs: 20000,
    read: messages::read_process,
};
