//! Every way that NATS has to prove oneself: with it a run goes through, and without it whoever asks is
//! told what to give.

use super::{Process, Site, device, finish, kernels, rows, tuner};
use data_encoding::BASE64URL_NOPAD;
use nkeys::KeyPair;
use serde_json::json;
use std::path::Path;
use tempfile::TempDir;

/// A server with these settings.
fn site(settings: &str) -> Site {
    Site::with(settings)
}

fn certificate(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tls");
    folder.join(name).display().to_string()
}

/// Writes a secret into the test's folder.
fn secret(site: &Site, name: &str, text: &str) -> String {
    let path = site.path(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// A run of twenty candidates with what proves the hub's and the worker's right.
#[track_caller]
fn assert_admitted(site: &mut Site, hub: &[&str], worker: &[&str]) {
    let url = site.server.url();
    let device = device();
    let mut lent = site.worker_with(&url, &[&["--device", &device][..], worker].concat());
    let mut run = site.run("t.db", &[&["--evals", "20"][..], hub].concat());
    let code = run.code();
    assert_eq!(code, 0, "{}\nworker: {}", run.log(), lent.log());
    assert_eq!(rows(&site.path("t.db")).len(), 20);
    lent.signal("TERM");
    assert_eq!(lent.code(), 0, "{}", lent.log());
    let said = format!("{}{}", lent.log(), run.log());
    assert!(!said.contains("secret"), "{said}");
}

/// Whoever comes with this is refused with exit code 2 and a sentence that has these words.
#[track_caller]
fn assert_refused(site: &mut Site, shown: &[&str], words: &[&str]) {
    let url = site.server.url();
    let device = device();
    let mut worker = site.worker_with(&url, &[&["--device", &device][..], shown].concat());
    assert_eq!(worker.code(), 2, "{}", worker.log());
    for word in words {
        assert!(worker.log().contains(word), "`{word}`: {}", worker.log());
    }
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn a_token() {
    let mut site = site("authorization { token: \"secret-token\" }");
    let wrong = secret(&site, "wrong", "secret-of-somebody-else");
    assert_refused(&mut site, &["--fleet-token", &wrong], &["--fleet-token"]);
    let token = secret(&site, "token", "secret-token\n");
    let shown = ["--fleet-token", token.as_str()];
    assert_admitted(&mut site, &shown, &shown);
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn an_nkey() {
    let (user, stranger) = (KeyPair::new_user(), KeyPair::new_user());
    let settings = format!(
        "authorization {{ users: [ {{ nkey: {} }} ] }}",
        user.public_key()
    );
    let mut site = site(&settings);
    let other = secret(&site, "other", &stranger.seed().unwrap());
    assert_refused(&mut site, &["--fleet-nkey", &other], &["--fleet-nkey"]);
    let none = secret(&site, "none", "not a seed\n");
    assert_refused(&mut site, &["--fleet-nkey", &none], &["none", "seed"]);
    let seed = secret(&site, "seed", &user.seed().unwrap());
    let shown = ["--fleet-nkey", seed.as_str()];
    assert_admitted(&mut site, &shown, &shown);
}

/// A JWT as NATS has them, signed by the issuer.
fn token(issuer: &KeyPair, subject: &KeyPair, nats: serde_json::Value) -> String {
    let part = |value: serde_json::Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    let head = part(json!({ "typ": "JWT", "alg": "ed25519-nkey" }));
    let claims = part(json!({
        "jti": "test", "iat": 1, "iss": issuer.public_key(), "name": "test",
        "sub": subject.public_key(), "nats": nats,
    }));
    let signed = format!("{head}.{claims}");
    let signature = issuer.sign(signed.as_bytes()).unwrap();
    format!("{signed}.{}", BASE64URL_NOPAD.encode(&signature))
}

/// The file that `nsc` makes for a user.
fn credentials(account: &KeyPair, user: &KeyPair) -> String {
    let claims = json!({
        "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1, "type": "user", "version": 2,
    });
    format!(
        "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
        token(account, user, claims),
        user.seed().unwrap()
    )
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn credentials_of_an_operator() {
    let operator = KeyPair::new_operator();
    let (account, system) = (KeyPair::new_account(), KeyPair::new_account());
    let own = token(
        &operator,
        &operator,
        json!({ "type": "operator", "version": 2 }),
    );
    let jwt = |of: &KeyPair, jetstream: bool| {
        let stored = if jetstream { -1 } else { 0 };
        let limits = json!({
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
            "conn": -1, "leaf": -1, "mem_storage": stored, "disk_storage": stored,
            "streams": stored, "consumer": stored,
        });
        let claims = json!({
            "limits": limits, "default_permissions": { "pub": {}, "sub": {} },
            "type": "account", "version": 2,
        });
        format!("{}: {}", of.public_key(), token(&operator, of, claims))
    };
    // A server of an operator has an account for itself.
    let settings = format!(
        "operator: {own}\nsystem_account: {}\nresolver: MEMORY\nresolver_preload: {{\n{}\n{}\n}}",
        system.public_key(),
        jwt(&account, true),
        jwt(&system, false)
    );
    let mut site = site(&settings);
    let user = KeyPair::new_user();
    let stranger = credentials(&KeyPair::new_account(), &user);
    let other = secret(&site, "other.creds", &stranger);
    assert_refused(&mut site, &["--fleet-creds", &other], &["--fleet-creds"]);
    assert_refused(&mut site, &["--fleet-creds", "/absent"], &["/absent"]);
    let creds = secret(&site, "user.creds", &credentials(&account, &user));
    let shown = ["--fleet-creds", creds.as_str()];
    assert_admitted(&mut site, &shown, &shown);
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn certificates_of_both_sides() {
    let settings = format!(
        "tls {{ cert_file: '{}', key_file: '{}', ca_file: '{}', verify: true }}",
        certificate("server.pem"),
        certificate("server.key"),
        certificate("ca.pem")
    );
    let mut site = site(&settings);
    let (ca, pem, key) = (
        certificate("ca.pem"),
        certificate("client.pem"),
        certificate("client.key"),
    );
    // Not an authority of the system's.
    let own = ["--fleet-cert", pem.as_str(), "--fleet-key", &key];
    assert_refused(&mut site, &own, &["--fleet-ca"]);
    let absent = ["--fleet-ca", "/absent.pem"];
    assert_refused(&mut site, &absent, &["/absent.pem"]);
    assert_refused(&mut site, &["--fleet-ca", &ca], &["--fleet-cert"]);
    let shown = [&["--fleet-ca", ca.as_str()][..], &own].concat();
    assert_admitted(&mut site, &shown, &shown);
}

/// The server that `contrib/nats.conf` describes, on a port and in a folder of the test's.
fn documented(folder: &Path) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("contrib/nats.conf");
    let text = std::fs::read_to_string(path).unwrap();
    let own = |line: &&str| !line.starts_with("listen:") && !line.starts_with("http:");
    let lines: Vec<&str> = text.lines().filter(own).collect();
    let store = folder.join("store").display().to_string();
    lines.join("\n").replace("/var/lib/nats", &store)
}

#[test]
#[cfg_attr(not(nats_server), ignore = "no nats-server is here: scripts/get-nats")]
fn the_rights_of_the_documented_configuration_suffice() {
    let folder = TempDir::new().unwrap();
    let mut site = site(&documented(folder.path()));
    kernels::lay_out(site.folder.path());
    let hub = secret(&site, "hub", "change-me-hub");
    let worker = secret(&site, "worker", "change-me-worker");
    let shown = ["--fleet-user", "worker", "--fleet-password", &worker];
    let url = site.server.url();
    let only = [&["--compile-only", "--jobs", "1"][..], &shown].concat();
    let compiler = site.worker_with(&url, &only);
    let lent = [&["--device", "vgpu:a100", "--jobs", "1"][..], &shown].concat();
    let device = site.worker_with(&url, &lent);
    let own = ["--fleet-user", "hub", "--fleet-password", &hub];
    let mut run = kernels::on_fleet_with(&site, "t.db", &own);
    let said = |process: &Process| process.log();
    assert_eq!(
        run.code(),
        0,
        "{}\n{}\n{}",
        run.log(),
        said(&compiler),
        said(&device)
    );
    assert_eq!(rows(&site.path("t.db")).len(), 16);
    for log in [run.log(), compiler.log(), device.log()] {
        assert!(!log.contains("ermissions"), "{log}");
    }
    let mut status = tuner();
    finish(status.args(["status", "--fleet", &url]).args(own));
}

/// A worker of a fleet whose server is not there, without the user's folders.
fn homeless_worker(temporary: &std::path::Path) -> std::process::Command {
    let mut command = super::tuner();
    command
        .args([
            "worker",
            "--fleet",
            "nats://127.0.0.1:1",
            "--device",
            &super::device(),
        ])
        .env_remove("HOME")
        .env_remove("XDG_CACHE_HOME")
        .env_remove("TUNER_CACHE")
        .env("TMPDIR", temporary);
    command
}

#[test]
fn a_worker_without_a_home_lays_files_out_in_a_folder_that_nobody_can_foresee() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let temporary = dir.path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    // What others may have put into the folder of everybody.
    let victim = dir.path().join("victim");
    std::fs::create_dir(&victim).unwrap();
    for name in ["tuner", "tuner-fleet", "fleet", "tuner-cache"] {
        std::os::unix::fs::symlink(&victim, temporary.join(name)).unwrap();
    }
    let log = dir.path().join("log");
    let mut worker = super::Process::start(&mut homeless_worker(&temporary), log);
    let made = || {
        let entries = std::fs::read_dir(&temporary).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path().join("fleet"));
        paths.find(|path| !path.starts_with(&victim) && path.is_dir())
    };
    let began = std::time::Instant::now();
    while made().is_none() {
        assert!(began.elapsed().as_secs() < 60, "{}", worker.log());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let folder = made().unwrap();
    for path in [folder.as_path(), folder.parent().unwrap()] {
        let mode = path.symlink_metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o700, "{}", path.display());
    }
    worker.kill();
    assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 0);
}

#[test]
fn a_worker_refuses_a_folder_that_others_control() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let cache = dir.path().join("cache");
    std::fs::create_dir(&cache).unwrap();
    let victim = dir.path().join("victim");
    std::fs::create_dir(&victim).unwrap();
    let refused = || {
        let log = dir.path().join("log");
        let mut command = homeless_worker(dir.path());
        let mut worker = super::Process::start(command.env("TUNER_CACHE", &cache), log);
        assert_eq!(worker.code(), 2, "{}", worker.log());
        assert!(worker.log().contains("set TUNER_CACHE"), "{}", worker.log());
    };
    std::os::unix::fs::symlink(&victim, cache.join("fleet")).unwrap();
    refused();
    std::fs::remove_file(cache.join("fleet")).unwrap();
    std::fs::set_permissions(&cache, std::fs::Permissions::from_mode(0o777)).unwrap();
    refused();
    assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 0);
}
