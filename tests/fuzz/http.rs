//! Requests to a daemon, damaged as bytes.

use super::{Target, fuzz, stored};
use crate::serve::Daemon;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

static HTTP_REQUEST: Target = Target {
    name: "http_request",
    corpus: || stored("corpus", "http_request"),
    words: &[
        "\r\n",
        "\r\n\r\n",
        "content-length: 18446744073709551615\r\n",
        "transfer-encoding: chunked\r\n",
        "ffffffffffffffff\r\n",
        "host: evil.example\r\n",
        "%2e%2e%2f",
        "/api/v1/",
        "?limit=",
        "HTTP/1.0",
        "expect: 100-continue\r\n",
        "\"knowledge\": [\"/etc/passwd\"]",
    ],
    inputs: 2000,
    read: |_| {},
};

#[test]
fn http_request() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(&dir.path().join("t.db"));
    let (address, log) = (daemon.address().to_owned(), daemon.log_file().to_owned());
    let told = fuzz(&HTTP_REQUEST, move |bytes| {
        let mut stream = TcpStream::connect(&address).unwrap();
        let patience = Duration::from_secs(60);
        stream.set_read_timeout(Some(patience)).unwrap();
        // A daemon that refuses early may close before it has read everything.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = [0; 4096];
        let _ = stream.read(&mut answer);
        let said = std::fs::read_to_string(&log).unwrap();
        assert!(!said.contains("panicked"), "{said}");
    });
    println!("{told}");
    let (status, health) = daemon.get("/healthz");
    assert_eq!(status, 200, "{health}");
    assert!(daemon.end().success());
}
