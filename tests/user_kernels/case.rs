//! Projects and their cases, as they are read from `projects/*.toml`.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Whether a case is meant to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Right,
    Wrong,
}

/// A text, or several of which each counts.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(untagged)]
pub(crate) enum Texts {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

impl Texts {
    pub(crate) fn list(&self) -> &[String] {
        match self {
            Self::None => &[],
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }
}

/// What a project's file says of a case.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    /// For readers.
    #[serde(rename = "why")]
    _why: Option<String>,
    #[serde(default)]
    edit: Vec<(String, String, String)>,
    #[serde(default)]
    verdict: Texts,
    #[serde(default)]
    says: Texts,
    #[serde(default, rename = "where")]
    wrong: BTreeMap<String, serde_json::Value>,
    exit: Option<i32>,
    #[serde(default)]
    alone: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// For readers.
    #[serde(rename = "about")]
    _about: String,
    space: String,
    kernel: String,
    #[serde(default)]
    reference: String,
    #[serde(default)]
    both_orders: bool,
    #[serde(default)]
    slow: bool,
    #[serde(default)]
    right: BTreeMap<String, Change>,
    #[serde(default)]
    wrong: BTreeMap<String, Change>,
}

/// One case: a project with its edits made.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    /// Name of the project and the case, which is the kernel's.
    pub(crate) name: String,
    /// The files, by their parts' names.
    parts: BTreeMap<&'static str, String>,
    /// Verdicts that refuse it.
    pub(crate) verdicts: Vec<String>,
    /// What the detail of a refused row must contain.
    pub(crate) says: Vec<String>,
    /// Values of the configurations that are wrong; all are where there are none.
    wrong: BTreeMap<String, serde_json::Value>,
    /// The exit code, where the space itself is refused.
    pub(crate) exit: Option<i32>,
    /// It is judged in a process of its own, because `run` may refuse the space.
    pub(crate) alone: bool,
}

/// A project with its cases, right ones first.
#[derive(Debug)]
pub(crate) struct Project {
    pub(crate) cases: Vec<Case>,
    /// Its cases are judged in the reverse order too.
    pub(crate) both_orders: bool,
    /// It takes about a minute: a third of its cases is checked, and none ranked and gated, but by
    /// `make nightly`.
    slow: bool,
}

impl Case {
    fn new(kind: Kind, name: String, file: &File, change: Change) -> Self {
        let mut parts = BTreeMap::from([
            ("space", file.space.replace("$KERNEL", &name)),
            ("kernel", file.kernel.clone()),
            ("reference", file.reference.clone()),
        ]);
        for (part, find, replace) in &change.edit {
            let text = parts.get_mut(part.as_str());
            let text = text.unwrap_or_else(|| panic!("{name}: no part `{part}`"));
            assert!(text.contains(find), "{name}: {part} has no `{find}`");
            *text = text.replace(find, replace);
        }
        assert_eq!(
            kind == Kind::Wrong,
            change.exit.is_some() || !change.verdict.list().is_empty(),
            "{name}: wrong cases, and only they, have a verdict or an exit code"
        );
        Self {
            kind,
            name,
            parts,
            verdicts: change.verdict.list().to_vec(),
            says: change.says.list().to_vec(),
            wrong: change.wrong,
            exit: change.exit,
            alone: change.alone,
        }
    }

    /// Writes the case's files to a folder of its own; the space's path, relative to `folder`.
    pub(crate) fn write(&self, folder: &Path) -> PathBuf {
        let own = folder.join(&self.name);
        std::fs::create_dir_all(&own).unwrap();
        for (part, file) in [
            ("space", "space.yaml"),
            ("kernel", "kernel.cu"),
            ("reference", "reference.cu"),
        ] {
            if !self.parts[part].is_empty() {
                std::fs::write(own.join(file), &self.parts[part]).unwrap();
            }
        }
        PathBuf::from(&self.name).join("space.yaml")
    }

    /// Whether another case of the project has the same space and reference.
    pub(crate) fn differs_in_the_kernel_only(&self, other: &Self) -> bool {
        let space = |case: &Self| case.parts["space"].replace(&case.name, "");
        space(self) == space(other) && self.parts["reference"] == other.parts["reference"]
    }

    /// Overwrites this case's kernel, written to `folder`, with another's.
    pub(crate) fn take_kernel_of(&self, other: &Self, folder: &Path) {
        let file = folder.join(&self.name).join("kernel.cu");
        std::fs::write(file, &other.parts["kernel"]).unwrap();
    }

    /// Whether this configuration is wrong.
    pub(crate) fn is_wrong(&self, config: &serde_json::Value) -> bool {
        self.kind == Kind::Wrong
            && self
                .wrong
                .iter()
                .all(|(name, value)| &config[name] == value)
    }

    /// Whether some configurations of a wrong case are right.
    pub(crate) fn is_partly_right(&self) -> bool {
        self.kind == Kind::Right || !self.wrong.is_empty()
    }
}

impl Project {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let mut file: File =
            toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let project = path.file_stem().unwrap().to_string_lossy().into_owned();
        let name = |case: &str| format!("{project}-{case}");
        let (right, wrong) = (
            std::mem::take(&mut file.right),
            std::mem::take(&mut file.wrong),
        );
        let right = right
            .into_iter()
            .map(|(case, change)| Case::new(Kind::Right, name(&case), &file, change));
        let wrong = wrong
            .into_iter()
            .map(|(case, change)| Case::new(Kind::Wrong, name(&case), &file, change));
        Self {
            cases: right.chain(wrong).collect(),
            both_orders: file.both_orders,
            slow: file.slow,
        }
    }
}

/// All projects, of which only the cases that were asked for.
pub(crate) fn projects() -> Vec<Project> {
    let only = std::env::var("TUNER_USER_KERNELS_ONLY").unwrap_or_default();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/user_kernels/projects");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    paths.sort();
    let mut projects: Vec<Project> = paths.iter().map(|path| Project::read(path)).collect();
    for project in &mut projects {
        project.cases.retain(|case| case.name.contains(&only));
    }
    projects.retain(|project| !project.cases.is_empty());
    projects
}

/// All projects, with a third of the right and of the wrong cases of slow ones; whole where
/// `TUNER_USER_KERNELS_ALL` is set.
pub(crate) fn checked_projects() -> Vec<Project> {
    let mut projects = projects();
    if std::env::var_os("TUNER_USER_KERNELS_ALL").is_none() {
        for project in projects.iter_mut().filter(|project| project.slow) {
            let (mut right, mut wrong) = (0, 0);
            project.cases.retain(|case| {
                let before = match case.kind {
                    Kind::Right => &mut right,
                    Kind::Wrong => &mut wrong,
                };
                *before += 1;
                *before % 3 == 1
            });
        }
    }
    projects
}

/// Every `step`-th of the projects that are not slow; all where `TUNER_USER_KERNELS_ALL` is set, as in `make nightly`.
pub(crate) fn share_of_projects(step: usize) -> Vec<Project> {
    let all = std::env::var_os("TUNER_USER_KERNELS_ALL").is_some();
    projects()
        .into_iter()
        .filter(|project| all || !project.slow)
        .step_by(if all { 1 } else { step })
        .collect()
}
