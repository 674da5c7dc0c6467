//! Requests and surroundings that must not take the daemon down, and secrets that are none.

use super::{Daemon, RECORDED, recorded_folder, serve, wait_for};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Runs a statement on the database of a daemon that does not run.
fn sql(db: &Path, text: &'static str) -> u64 {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut connection = crate::rig::database::connected(db).await;
        let done = sqlx::query(text).execute(&mut connection).await.unwrap();
        done.rows_affected()
    })
}

/// A database with one run that a daemon took up and never finished.
fn abandoned(db: &Path) -> String {
    let daemon = Daemon::start(db);
    let id = daemon.submit(20, 1, "random");
    daemon.wait(&id, "finished");
    daemon.kill();
    assert_eq!(sql(db, "UPDATE queue SET state = 'running'"), 1);
    id
}

#[test]
fn a_number_of_jobs_that_no_machine_has_is_refused_and_the_daemon_lives() {
    let dir = TempDir::new().unwrap();
    let daemon = Daemon::start(&dir.path().join("t.db"));
    for jobs in ["65535", "0", "1025", "-1", "70000"] {
        let body =
            format!("{{\"device\": \"replay:{RECORDED}\", \"evals\": 20, \"jobs\": {jobs}}}");
        let (status, answer) = daemon.post("/api/v1/runs", &body);
        assert!((400..500).contains(&status), "{jobs}: {status} {answer}");
    }
    assert_eq!(daemon.get("/healthz").1["status"], "ok");
    let id = daemon.submit(20, 1, "random");
    daemon.wait(&id, "finished");
}

#[test]
fn a_stored_request_beyond_the_limits_fails_alone() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let id = abandoned(&db);
    sql(
        &db,
        "UPDATE queue SET state = 'queued', request = json_set(request, '$.jobs', 65535)",
    );
    let daemon = Daemon::start(&db);
    let run = daemon.wait(&id, "failed");
    let message = run["message"].as_str().unwrap();
    assert!(message.contains("65535 jobs"), "{message}");
    assert_eq!(daemon.get("/healthz").1["status"], "ok");
}

#[test]
fn a_run_that_took_two_daemons_down_while_it_was_set_up_is_set_aside() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let id = abandoned(&db);
    let note = dir.path().join("t.db-crash");
    // Killed while it set the run up: no fault of the run.
    sql(&db, "UPDATE queue SET attempts = 2");
    let daemon = Daemon::start(&db);
    daemon.wait(&id, "finished");
    daemon.kill();
    // Crashed once.
    sql(&db, "UPDATE queue SET state = 'running', attempts = 1");
    std::fs::write(&note, "a panic").unwrap();
    let daemon = Daemon::start(&db);
    daemon.wait(&id, "finished");
    assert!(!note.exists());
    daemon.kill();
    // Crashed twice.
    sql(&db, "UPDATE queue SET state = 'running', attempts = 2");
    std::fs::write(&note, "a panic").unwrap();
    let daemon = Daemon::start(&db);
    let run = daemon.wait(&id, "failed");
    let message = run["message"].as_str().unwrap();
    assert!(message.contains("set aside"), "{message}");
    assert!(message.contains("--jobs"), "{message}");
}

#[test]
fn a_run_of_a_daemon_that_is_gone_can_be_stopped_offline() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let id = abandoned(&db);
    let stop = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tuner"));
        command
            .args(["stop", "--offline", &id, "--db"])
            .arg(&db)
            .env_remove("TUNER_TOKEN");
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&text).into_owned(),
        )
    };
    let (code, text) = stop();
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains(": stopped"), "{text}");
    let (code, text) = stop();
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("tuner status"), "{text}");
    let daemon = Daemon::start(&db);
    daemon.wait(&id, "stopped");
    let (code, text) = stop();
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("leave --offline out"), "{text}");
}

#[test]
fn a_token_that_is_none_is_refused_at_the_start() {
    let dir = TempDir::new().unwrap();
    let (db, file) = (dir.path().join("t.db"), dir.path().join("token"));
    for (text, mode, words) in [
        ("", 0o600, "holds no token"),
        (" \n\t", 0o600, "holds no token"),
        ("short", 0o600, "shorter than 16"),
        ("a-token-of-some-length", 0o644, "chmod 600"),
        ("a-token-of-some\nlength-and-more", 0o600, "one line"),
        ("a-token of some length", 0o600, "one line"),
        ("a-token-of-\u{1b}[31m-length", 0o600, "one line"),
        ("a-token-of-some-l\u{e4}ngth", 0o600, "one line"),
        ("\u{feff}a-token-of-some-length", 0o600, "one line"),
    ] {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let output = serve(&db).arg("--token-file").arg(&file).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text:?}: {message}");
        assert!(message.contains(words), "{text:?}: {message}");
    }
    for text in ["", "  "] {
        let output = serve(&db).env("TUNER_TOKEN", text).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text:?}: {message}");
        assert!(message.contains("TUNER_TOKEN holds no token"), "{message}");
    }
    let several = "a-token-of-some-length\r\nx: y";
    let output = serve(&db).env("TUNER_TOKEN", several).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("one line"), "{message}");
    assert!(!db.exists());
}

#[test]
fn a_daemon_whose_log_nobody_reads_works_and_ends_with_0() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let mut command = serve(&db);
    let mut child = command
        .env("TUNER_LOG", "debug")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The reader of the log goes away, as `head` does.
    drop(child.stderr.take());
    let mut line = String::new();
    let output = child.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
    let submit = |seed: &str| {
        let device = format!("replay:{}", recorded_folder().join(RECORDED).display());
        Command::new(env!("CARGO_BIN_EXE_tuner"))
            .args(["run", "--device", &device, "--evals", "50", "--seed", seed])
            .arg("--db")
            .arg(&db)
            .env_remove("TUNER_TOKEN")
            .output()
            .unwrap()
    };
    for seed in ["1", "2"] {
        let done = submit(seed);
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(0), "{text}");
    }
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .unwrap()
            .success()
    );
    let ended = wait_for("the daemon's end", || child.try_wait().unwrap());
    assert_eq!(ended.code(), Some(0));
}

#[test]
fn a_run_whose_standard_error_is_closed_ends_as_any_other() {
    let dir = TempDir::new().unwrap();
    let device = format!("replay:{}", recorded_folder().join(RECORDED).display());
    let mut child = Command::new(env!("CARGO_BIN_EXE_tuner"))
        .args(["run", "--device", &device, "--evals", "300", "--db"])
        .arg(dir.path().join("t.db"))
        .env_remove("TUNER_TOKEN")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_database_that_cannot_be_written_is_named_until_it_can() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let daemon = Daemon::start(&db);
    assert_eq!(daemon.get("/readyz").0, 200);
    sql(
        &db,
        "CREATE TRIGGER broken BEFORE UPDATE ON daemon
         BEGIN SELECT RAISE(ABORT, 'the disk is on fire'); END",
    );
    let (status, health) = daemon.get("/healthz");
    assert_eq!((status, &health["status"]), (200, &"failing".into()));
    let condition = &health["conditions"][0];
    assert_eq!(condition["name"], "database_not_writable");
    assert!(condition["detail"].as_str().unwrap().contains("on fire"));
    assert!(condition["since"].as_str().unwrap().ends_with('Z'));
    assert_eq!(daemon.get("/readyz").0, 503);
    let gauge = |value: u8| format!("tuner_condition{{name=\"database_not_writable\"}} {value}\n");
    let metrics = daemon.request("GET", "/metrics", "", b"").unwrap().body;
    assert!(metrics.contains(&gauge(1)), "{metrics}");
    sql(&db, "DROP TRIGGER broken");
    assert_eq!(daemon.get("/healthz").1["status"], "ok");
    assert_eq!(daemon.get("/readyz").0, 200);
    let metrics = daemon.request("GET", "/metrics", "", b"").unwrap().body;
    assert!(metrics.contains(&gauge(0)), "{metrics}");
}

#[test]
fn a_full_queue_takes_no_more_and_says_so() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let id = abandoned(&db);
    sql(
        &db,
        "UPDATE queue SET state = 'queued', device = 'cuda:77', request = '{\"device\": \"cuda:77\"}'",
    );
    sql(
        &db,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 14000)
         INSERT INTO queue (name, device, request, state, submitted_at)
         SELECT name || '-' || i, device, request, state, submitted_at FROM queue, n",
    );
    let daemon = Daemon::start(&db);
    let body = format!("{{\"device\": \"replay:{RECORDED}\", \"evals\": 20}}");
    let (status, answer) = daemon.post("/api/v1/runs", &body);
    assert_eq!(status, 429, "{id}: {answer}");
    assert!(answer["detail"].as_str().unwrap().contains("tuner stop"));
    let health = daemon.get("/healthz").1;
    assert_eq!(health["status"], "degraded", "{health}");
    // Runs on a GPU that is not there have failed meanwhile, which is a condition too.
    let conditions = health["conditions"].as_array().unwrap();
    assert!(
        conditions.iter().any(|found| found["name"] == "queue_full"),
        "{health}"
    );
}

#[test]
fn a_fifo_among_the_kernels_blocks_nobody() {
    let dir = TempDir::new().unwrap();
    let folder = dir.path().join("kernels");
    std::fs::create_dir(&folder).unwrap();
    let made = Command::new("mkfifo")
        .arg(folder.join("fifo.yaml"))
        .status();
    assert!(made.unwrap().success());
    let db = dir.path().join("t.db");
    let mut command = serve(&db);
    command.arg("--kernels").arg(&folder);
    let daemon = Daemon::from(&mut command, &db);
    for _ in 0..20 {
        let (status, answer) = daemon.post(
            "/api/v1/runs",
            "{\"kernels\": [\"fifo\"], \"device\": \"vgpu:l4\", \"evals\": 1}",
        );
        assert_eq!(status, 422, "{answer}");
    }
    assert_eq!(daemon.get("/healthz").1["status"], "ok");
}

#[test]
fn a_fifo_in_place_of_a_file_is_refused_at_once() {
    let dir = TempDir::new().unwrap();
    let fifo = dir.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    std::fs::set_permissions(&fifo, std::fs::Permissions::from_mode(0o600)).unwrap();
    let fifo = fifo.to_str().unwrap();
    let db = dir.path().join("t.db").display().to_string();
    let device = format!("replay:{}", recorded_folder().join(RECORDED).display());
    for arguments in [
        vec!["serve", "--listen", "127.0.0.1:0", "--db", fifo],
        vec![
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--db",
            &db,
            "--token-file",
            fifo,
        ],
        vec!["leaderboard", "--db", fifo],
        vec!["run", "--db", &db, "--device", &device, "--events", fifo],
        vec!["space", fifo],
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tuner"));
        let output = command.args(&arguments).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains("FIFO"), "{arguments:?}: {message}");
    }
}

#[test]
fn the_end_of_its_terminal_ends_a_daemon_in_order() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let plain = serve(&db);
    let mut command = Command::new("env");
    // Under nohup the signal is ignored, and a daemon that inherits this goes on by design.
    command
        .arg("--default-signal=HUP")
        .arg(plain.get_program())
        .args(plain.get_args())
        .env_remove("TUNER_TOKEN");
    let mut daemon = Daemon::from(&mut command, &db);
    daemon.signal("HUP");
    assert!(daemon.child.wait().unwrap().success());
    assert!(daemon.log().contains("everything announced is stored"));
}

#[test]
fn the_database_is_for_its_owner_alone_and_has_one_name() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let daemon = Daemon::start(&db);
    for name in ["t.db", "t.db-wal"] {
        let mode = std::fs::metadata(dir.path().join(name)).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o600, "{name}");
    }
    let link = dir.path().join("link.db");
    std::fs::hard_link(&db, &link).unwrap();
    let output = serve(&link).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("2 names"), "{message}");
    let id = daemon.submit(20, 1, "random");
    daemon.wait(&id, "finished");
}

/// A daemon with the stand-in for GPUs, whose kernel is one of the planted ones.
fn with_stand_in(folder: &Path, failure: &str) -> Daemon {
    let db = folder.join("tuner.db");
    let mut command = Command::new(crate::rig::program());
    command.args(["serve", "--listen", "127.0.0.1:0", "--db"]);
    command.arg(&db).arg("--kernels").arg(folder);
    command.env_remove("TUNER_TOKEN");
    command.env("TUNER_FAKE_GPU", &db);
    command.env("TUNER_FAKE_CUDA_ERROR", failure);
    Daemon::from(&mut command, &db)
}

const ON_A_GPU: &str = "{\"device\": \"cuda:0\", \"kernels\": [\"planted\"], \
                        \"problems\": [\"short\"], \"evals\": 1}";

#[test]
fn a_gpu_that_fails_is_named_with_its_reason() {
    let dir = TempDir::new().unwrap();
    crate::cuda::planted(dir.path(), "0", "0");
    let daemon = with_stand_in(dir.path(), "cuDevicePrimaryCtxRetain:46");
    let (status, answer) = daemon.post("/api/v1/runs", ON_A_GPU);
    assert_eq!(status, 201, "{answer}");
    daemon.wait(answer["id"].as_str().unwrap(), "failed");
    let health = daemon.get("/healthz").1;
    assert_eq!(health["status"], "degraded", "{health}");
    let condition = &health["conditions"][0];
    assert_eq!(condition["name"], "device_failing", "{health}");
    let detail = condition["detail"].as_str().unwrap();
    assert!(detail.contains("held by another process"), "{detail}");
    let metrics = daemon.request("GET", "/metrics", "", b"").unwrap().body;
    assert!(metrics.contains("tuner_condition{name=\"device_failing\"} 1\n"));
}

#[test]
fn a_kernel_that_is_wrong_says_nothing_of_the_gpu() {
    let dir = TempDir::new().unwrap();
    let space = crate::cuda::planted(dir.path(), "0", "0");
    let mut text = std::fs::read_to_string(&space).unwrap();
    text.push_str("constraints:\n  - { rule: SLOW > 100, why: never }\n");
    std::fs::write(&space, text).unwrap();
    let daemon = with_stand_in(dir.path(), "");
    let (status, answer) = daemon.post("/api/v1/runs", ON_A_GPU);
    assert_eq!(status, 201, "{answer}");
    let run = daemon.wait(answer["id"].as_str().unwrap(), "failed");
    assert!(run["message"].as_str().unwrap().contains("SLOW"), "{run}");
    assert_eq!(daemon.get("/healthz").1["status"], "ok");
}

#[test]
fn a_missing_compiler_is_named() {
    let dir = TempDir::new().unwrap();
    let db = dir.path().join("t.db");
    let mut command = serve(&db);
    command.env("TUNER_NVRTC", dir.path().join("nothing"));
    let daemon = Daemon::from(&mut command, &db);
    let health = daemon.get("/healthz").1;
    assert_eq!(
        health["conditions"][0]["name"], "compiler_missing",
        "{health}"
    );
    assert_eq!(daemon.get("/readyz").0, 503);
}
