//! A way to the server that can be cut.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Forwards to a server; while it is cut, it swallows everything and closes nothing.
pub(super) struct Proxy {
    port: u16,
    cut: Arc<AtomicBool>,
}

impl Proxy {
    pub(super) fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().port();
        let cut = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&cut);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else {
                    continue;
                };
                forward(&client, &server, &seen);
                forward(&server, &client, &seen);
            }
        });
        Self { port: own, cut }
    }

    pub(super) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(super) fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Relaxed);
    }
}

fn forward(from: &TcpStream, to: &TcpStream, cut: &Arc<AtomicBool>) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    let cut = Arc::clone(cut);
    std::thread::spawn(move || {
        let mut buffer = [0; 64 << 10];
        let mut swallowed = false;
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if cut.load(Ordering::Relaxed) {
                swallowed = true;
                continue;
            }
            // Half a message is no stream any more: both sides begin anew.
            if swallowed || to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(std::net::Shutdown::Both);
        let _ = to.shutdown(std::net::Shutdown::Both);
        std::thread::sleep(Duration::from_millis(1));
    });
}
