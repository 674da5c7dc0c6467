//! Files that are none, and files without end, in place of every file and folder that a command takes.
//! The options are those of the help, so that a new one cannot be forgotten.

use crate::program::{ended, folder, root, tuner};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Longest time of a command that has nothing to do.
const DEADLINE: Duration = Duration::from_secs(30);

/// A command of the program with the arguments that it needs.
struct Form {
    name: &'static str,
    /// Its operand, in place of which a file may stand; empty for none.
    operand: &'static str,
    options: &'static str,
}

const fn form(name: &'static str, operand: &'static str, options: &'static str) -> Form {
    Form {
        name,
        operand,
        options,
    }
}

const VGPU: &str = "--device vgpu:l4 --evals 1";
const FORMS: &[Form] = &[
    form("run", "softmax", VGPU),
    form("leaderboard", "softmax", ""),
    form("export", "softmax", ""),
    form("import", "none.json", ""),
    form("record", "softmax", ""),
    form("sync", "none.db", ""),
    form("report", "softmax", ""),
    form("portfolio", "softmax", ""),
    form("gate", "softmax", "--device vgpu:l4"),
    form("verify", "none.h", ""),
    form(
        "evolve",
        "softmax",
        "--mutator scripted --device vgpu:l4 --rounds 1",
    ),
    form("profile", "softmax", "--device vgpu:l4"),
    form("replay", "none.json", ""),
    form("space", "none.yaml", ""),
    form("adopt", "k.cu", ""),
    form("check", "none.yaml", ""),
    form("predict", "none.yaml", ""),
    form("exec", "", "-- /bin/true"),
    form("ablate", "softmax", "--device vgpu:l4"),
    form("serve", "", "--listen 127.0.0.1:0"),
    form("submit", "softmax", VGPU),
    form("status", "", ""),
    form("stop", "1", ""),
    form("worker", "", "--fleet nats://127.0.0.1:1"),
    form("new", "k", ""),
    form("doctor", "", ""),
    form("completions", "bash", ""),
    form("man", "", ""),
];

/// What a command takes: its operand (empty) and options that name files or folders.
fn files_of(folder: &Path, command: &str) -> Vec<String> {
    let help = ended(tuner(folder).args([command, "--help"])).stdout;
    let mut found = Vec::new();
    for line in help.lines().map(str::trim_start) {
        let names_file = ["FILE", "DIR", "FOLDER"].iter().any(|it| line.contains(it));
        if !names_file {
            continue;
        }
        let option = line.split([' ', '=']).find(|word| word.starts_with("--"));
        match option.filter(|_| line.starts_with('-')) {
            Some(option) => found.push(option.to_owned()),
            None if line.starts_with(['<', '[']) => found.push(String::new()),
            None => {}
        }
    }
    found
}

/// The arguments of a command with a path as one of its files.
fn arguments(form: &Form, option: &str, path: &str) -> Vec<String> {
    let mut words = vec![form.name.to_owned()];
    if option.is_empty() {
        words.push(path.to_owned());
    } else if !form.operand.is_empty() {
        words.push(form.operand.to_owned());
    }
    if !option.is_empty() {
        words.push(format!("{option}={path}"));
    }
    let other = match option {
        "--fleet-password" => "--fleet-user=u".to_owned(),
        "--fleet-cert" => format!("--fleet-key={path}"),
        "--fleet-key" => format!("--fleet-cert={path}"),
        _ => String::new(),
    };
    words.extend(Some(other).filter(|word| !word.is_empty()));
    if option.starts_with("--fleet-") && !form.options.contains("--fleet") {
        words.push("--fleet=nats://127.0.0.1:1".to_owned());
    }
    words.extend(form.options.split_whitespace().map(str::to_owned));
    words
}

/// Runs a command to its end: the code and what it says.
fn run(folder: &Path, arguments: &[String]) -> (Option<i32>, String) {
    let mut command = tuner(folder);
    command
        .args(arguments)
        .env("XDG_CACHE_HOME", folder.join("cache"));
    let log = std::fs::File::create(folder.join("log")).unwrap();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    let mut child = command.spawn().unwrap();
    let began = Instant::now();
    let code = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status.code(),
            None if began.elapsed() > DEADLINE => {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let log = std::fs::read(folder.join("log")).unwrap();
    (code, String::from_utf8_lossy(&log).into_owned())
}

/// Runs every command with a file that is none in every place; `make` creates it.
fn sweep(make: impl Fn(&Path), refuses: impl Fn(&str, &str) -> bool) {
    let mut wrong = Vec::new();
    let at = folder(&[("k.cu", "__global__ void k(float *x) { x[0] = 1; }\n")]);
    for name in ["search_spaces", "templates"] {
        std::os::unix::fs::symlink(root().join(name), at.path().join(name)).unwrap();
    }
    let mut seen = std::collections::BTreeSet::new();
    for form in FORMS {
        for option in files_of(at.path(), form.name) {
            // The same code reads these for every command.
            let shared = option.starts_with("--fleet-") || option == "--token-file";
            if shared && !seen.insert(option.clone()) {
                continue;
            }
            for ending in ["", ".yaml", ".cu", ".svg"] {
                let path = at.path().join(format!("file{ending}"));
                let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
                make(&path);
            }
            let ending = match (form.name, option.as_str()) {
                ("adopt", "") | (_, "--build") => ".cu",
                (_, "--plot") => ".svg",
                ("import" | "verify" | "sync" | "replay", _) => "",
                (_, "") => ".yaml",
                _ => "",
            };
            let path = format!("./file{ending}");
            let words = arguments(form, &option, &path);
            let (code, said) = run(at.path(), &words);
            let shown = words.join(" ");
            let ends = code.is_some_and(|code| code <= 4) && !said.contains("panicked");
            let refused = matches!(code, Some(1 | 2));
            if !ends || !refused && refuses(form.name, &option) {
                wrong.push(format!("{shown}: {code:?} {said:.500}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Doctor reports it among other findings; a folder of headers is the compiler's matter.
fn is_refused(command: &str, option: &str) -> bool {
    !matches!((command, option), ("doctor", _) | ("adopt", "--include"))
}

#[test]
fn a_fifo_is_refused_at_once_wherever_a_file_or_folder_is_named() {
    let make = |path: &Path| {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(path, private).unwrap();
    };
    sweep(make, is_refused);
}

#[test]
fn a_link_to_itself_is_refused_wherever_a_file_or_folder_is_named() {
    let make = |path: &Path| std::os::unix::fs::symlink(path.file_name().unwrap(), path).unwrap();
    sweep(make, is_refused);
}

/// Outputs replace such a file.
#[test]
fn a_file_of_gigabytes_is_not_read_wherever_a_file_or_folder_is_named() {
    let make = |path: &Path| {
        let file = std::fs::File::create(path).unwrap();
        file.set_len(20 << 30).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(path, private).unwrap();
    };
    sweep(make, |_, _| false);
}

/// A device is read and written as it is asked for, where it is a place for output.
#[test]
fn a_device_without_end_is_not_read_wherever_a_file_or_folder_is_named() {
    let make = |path: &Path| std::os::unix::fs::symlink("/dev/zero", path).unwrap();
    sweep(make, |_, _| false);
}

/// A new command has a form above.
#[test]
fn every_command_is_among_the_forms() {
    let at = folder(&[]);
    let help = ended(tuner(at.path()).arg("--help")).stdout;
    let (_, rest) = help.split_once("Commands:").unwrap();
    let (list, _) = rest.split_once("\n\n").unwrap();
    let names = list
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = names.filter(|name| *name != "help").collect();
    let forms: Vec<&str> = FORMS.iter().map(|form| form.name).collect();
    assert_eq!(names, forms);
}
