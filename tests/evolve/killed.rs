//! An evolution that is killed, and one that goes on.

use super::{changes, lineages, project, python};
use crate::program::{ended, tuner};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

fn command(folder: &Path, mutator: &str) -> Command {
    let mut command = tuner(folder);
    command
        .args([
            "evolve",
            "space.yaml",
            "--mutator",
            mutator,
            "--device",
            "vgpu:h100",
            "--rounds",
            "6",
        ])
        .args(["--evals", "2", "--base-evals", "2", "--db", "t.db"]);
    command
}

#[test]
fn what_was_announced_survives_sigkill_and_the_evolution_goes_on() {
    let folder = project();
    let folder = folder.path();
    // Each round another source, right and of about the same speed.
    let body = "
source = request['parent']['source'].replace('pass < 400', 'pass < %d' % (400 - request['round']))
print(json.dumps({'id': request['id'], 'source': source, 'note': 'round %d' % request['round']}))";
    let mutator = python(folder, "rounds.py", body);
    for killed_after in [1, 3] {
        let mut child = command(folder, &mutator)
            .arg("--resume")
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let rounds = lines
            .map(Result::unwrap)
            .filter(|line| line.starts_with("round "));
        let announced = rounds
            .take_while(|line| !line.starts_with(&format!("round {killed_after}/")))
            .count();
        child.kill().unwrap();
        child.wait().unwrap();
        let stored = changes(folder);
        // The one that ended the loop was announced too.
        assert!(stored.len() > announced, "{stored:?}");
        assert!(stored.iter().any(|change| change["round"] == killed_after));
    }
    let ended = ended(command(folder, &mutator).arg("--resume"));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let all = lineages(folder);
    assert_eq!((all.len(), all[0]["state"].as_str()), (1, Some("finished")));
    let rounds: Vec<u64> = changes(folder)
        .iter()
        .map(|change| change["round"].as_u64().unwrap())
        .collect();
    assert_eq!(rounds, [1, 2, 3, 4, 5, 6], "each round once");
}
