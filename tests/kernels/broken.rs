//! Copies of shipped kernels with a fault, and the hazards that show it.

use crate::program::{root, tuner};
use std::fs;

/// Faults of a kernel: the file, the correct text, the broken one, the configuration that shows it, and
/// what the hazard's message contains.
pub(super) type Fault = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

/// Where faults are shown.
pub(super) struct Subject {
    pub(super) device: &'static str,
    /// A text of the search space, and what replaces it in the copy.
    pub(super) space: (&'static str, &'static str),
}

/// Files of a template that a copy takes where the kernel has them.
const OWN: [&str; 4] = [
    "kernel.cu",
    "warpgroup.cuh",
    "tensor_copies.cuh",
    "tensor_memory.cuh",
];

impl Subject {
    /// Checks a copy of a kernel with a fault; returns the verdict and its detail.
    pub(super) fn check(&self, kernel: &str, problem: &str, fault: &Fault) -> String {
        let (file, correct, broken, configuration, _) = *fault;
        let folder = tempfile::tempdir().unwrap();
        let own = OWN.map(|name| format!("templates/{kernel}/{name}"));
        let space = format!("search_spaces/{kernel}.yaml");
        let shared = [
            space.clone(),
            "templates/wgmma.cuh".to_owned(),
            "templates/mbarrier.cuh".to_owned(),
            "templates/tcgen05.cuh".to_owned(),
        ];
        let own = own.iter().filter(|name| root().join(name).is_file());
        for name in own.chain(&shared) {
            let copy = folder.path().join(name);
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            let mut text = fs::read_to_string(root().join(name)).unwrap();
            for (from, to) in [
                (name.ends_with(file), (correct, broken)),
                (*name == space && !self.space.0.is_empty(), self.space),
            ]
            .into_iter()
            .filter_map(|(applies, change)| applies.then_some(change))
            {
                assert_eq!(text.matches(from).count(), 1, "{from}");
                text = text.replace(from, to);
            }
            fs::write(copy, text).unwrap();
        }
        let arguments = ["--problem", problem, "--config", configuration];
        let output = tuner(folder.path())
            .args(["check", &space, "--device", self.device, "--format", "json"])
            .args(arguments)
            .output()
            .expect("tuner runs");
        let rows: serde_json::Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        let text = |key: &str| rows[0][key].as_str().unwrap_or_default().to_owned();
        format!("{}: {}", text("verdict"), text("detail"))
    }

    /// Checks that each fault is a race with its message.
    pub(super) fn assert_races(&self, kernel: &str, problem: &str, faults: &[Fault]) {
        for fault in faults {
            let (_, correct, broken, _, hazard) = fault;
            let found = self.check(kernel, problem, fault);
            let expected = found.starts_with("race: ") && found.contains(hazard);
            assert!(
                expected,
                "{kernel} with `{broken}` for `{correct}`: {found}"
            );
        }
    }
}
