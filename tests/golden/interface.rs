//! Exit codes, commands, options, and the daemon's interface.

use crate::golden::{folder_with_defects, recorded, root, stdout, tuner};
use std::fmt::Write as _;
use std::path::Path;

/// Invocations that scripts make, after the exit code that they end with. `{recorded}` is the
/// recorded file.
const EXIT_CODES: &str = "
0 --help
0 --version
0 run --help
0 space sum.yaml
0 space bare.yaml
0 doctor
0 completions bash
0 leaderboard --db old.db
0 status --db old.db
0 export softmax --db old.db --allow-predicted
0 check sum.yaml --device vgpu:a100 --config DEFECT=0
0 run --device replay:{recorded} --evals 2 --db new.db
2
2 tune
2 run --budgets 1h
2 run sum.yaml --budget soon
2 run sum.yaml --device gpu
2 run sum.yaml --device vgpu:b300
2 run sum.yaml --device vgpu:a100 --problem none
2 run --device replay:missing.json.gz
2 run missing.yaml --evals 1
2 run broken.yaml --evals 1
2 check broken.yaml
2 check wrong.yaml
2 check sum.yaml --config DEFECT=9
2 check sum.yaml --arch sm_12
2 space missing.yaml
2 space broken.yaml
2 predict sum.yaml --device cuda
2 replay sum.yaml
2 leaderboard --db missing.db
2 leaderboard --db not_a.db
2 leaderboard --db old.db --format xml
2 export softmax --db old.db --to yaml
2 export no_such_kernel --db old.db
2 gate sum.yaml --device vgpu:l4 --db old.db
3 export softmax --db old.db
3 run wrong.yaml --device vgpu:a100 --evals 1 --db new.db
4 check sum.yaml --device vgpu:a100 --config DEFECT=3
4 gate wrong.yaml --device vgpu:a100 --db old.db
";

#[test]
fn exit_codes_are_the_same() {
    let folder = folder_with_defects();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let sum = std::fs::read_to_string(folder.path().join("sum.yaml")).unwrap();
    let only_wrong = sum.replace("[0, 1, 2, 3], default: 0", "[3], default: 3");
    write("wrong.yaml", &only_wrong);
    write("broken.yaml", &sum.replace("problems:", "problem:"));
    write("bare.yaml", "parameters: { A: { values: [1, 2] } }\n");
    write("not_a.db", "text, whatever the name of the file says");
    let recorded = recorded().display().to_string();
    let mut different = String::new();
    for line in EXIT_CODES.trim().lines() {
        let mut words = line.split(' ');
        let code: i32 = words.next().unwrap().parse().unwrap();
        let arguments: Vec<String> = words
            .map(|word| word.replace("{recorded}", &recorded))
            .collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = tuner(folder.path(), &arguments);
        if output.status.code() != Some(code) {
            let errors = String::from_utf8_lossy(&output.stderr);
            writeln!(different, "{line}: {}\n{errors}", output.status).unwrap();
        }
    }
    assert!(different.is_empty(), "{different}");
}

/// The commands that `tuner --help` lists.
fn commands(folder: &Path) -> Vec<String> {
    let help = stdout(folder, &["--help"], 0);
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    list.take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect()
}

/// The options and arguments of a command, as its help lists them.
fn options(folder: &Path, command: &str) -> Vec<String> {
    let help = stdout(folder, &[command, "--help"], 0);
    help.lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with('-') || line.starts_with('[') || line.starts_with('<'))
        .filter(|line| line.starts_with("--") || !line.starts_with("- "))
        .filter(|line| !line.starts_with("[default") && !line.starts_with("[possible"))
        .map(|line| line.split("  ").next().unwrap_or(line).to_owned())
        .collect()
}

#[test]
fn commands_and_their_options_are_the_same() {
    let folder = folder_with_defects();
    let mut text = String::new();
    for command in commands(folder.path()) {
        if command == "help" {
            continue;
        }
        writeln!(text, "{command}").unwrap();
        for option in options(folder.path(), &command) {
            writeln!(text, "  {option}").unwrap();
        }
    }
    insta::assert_snapshot!(text);
}

/// The schema of search spaces, which editors read.
#[test]
fn the_schema_of_search_spaces_is_the_committed_one() {
    let committed = std::fs::read_to_string(root().join("search_spaces/schema.json")).unwrap();
    let committed: serde_json::Value = serde_json::from_str(&committed).unwrap();
    assert_eq!(tuner_space::json_schema(), committed);
}

/// The description of the daemon's interface, which follows from the types it answers with.
#[test]
fn the_daemon_describes_the_same_interface() {
    let folder = folder_with_defects();
    let document = daemon::openapi(&folder.path().join("serve.db"));
    insta::assert_binary_snapshot!(
        "openapi.json",
        crate::golden::pretty(&document).into_bytes()
    );
}

/// `tuner serve` for one question.
mod daemon {
    use serde_json::Value;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    struct Daemon(Child);

    impl Drop for Daemon {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// The document at `/openapi.json`.
    pub(super) fn openapi(database: &Path) -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tuner"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--db"]);
        command
            .arg(database)
            .arg("--kernels")
            .arg(database.parent().unwrap());
        command
            .env_remove("TUNER_TOKEN")
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut daemon = Daemon(command.spawn().unwrap());
        let mut line = String::new();
        BufReader::new(daemon.0.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .trim()
            .strip_prefix("dashboard: http://")
            .expect("it serves");
        let address = address.split(' ').next().unwrap();
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let head =
            format!("GET /openapi.json HTTP/1.0\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("200"), "{head}");
        serde_json::from_str(body).unwrap()
    }
}
