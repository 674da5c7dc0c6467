//! A `nats-server` of a test's own.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The server's program.
fn program() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join(".nats/nats-server");
    std::env::var_os("TUNER_NATS_SERVER").map_or(own, PathBuf::from)
}

/// A server with a folder; it ends with its test.
pub(super) struct Server {
    folder: TempDir,
    port: u16,
    child: Option<Child>,
}

impl Server {
    /// A server that answers, with these lines in its configuration.
    pub(super) fn start(settings: &str) -> Self {
        let mut server = Self::absent(settings);
        server.restart();
        server
    }

    /// A server that does not run yet.
    pub(super) fn absent(settings: &str) -> Self {
        let folder = TempDir::new().unwrap();
        // Free now, and given to nobody else while this test runs, as far as a system promises.
        let port = {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.local_addr().unwrap().port()
        };
        let store = folder.path().join("store");
        let own = if settings.contains("jetstream") {
            settings.replace("STORE", &store.display().to_string())
        } else {
            format!(
                "jetstream {{ store_dir: '{}' }}\n{settings}",
                store.display()
            )
        };
        let text = format!("listen: 127.0.0.1:{port}\n{own}\n");
        let mut file = std::fs::File::create(folder.path().join("nats.conf")).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Self {
            folder,
            port,
            child: None,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Starts it on what it had stored.
    pub(super) fn restart(&mut self) {
        let log = self.folder.path().join("log");
        let child = Command::new(program())
            .arg("-c")
            .arg(self.folder.path().join("nats.conf"))
            .arg("-l")
            .arg(&log)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.child = Some(child);
        super::until(
            || TcpStream::connect(("127.0.0.1", self.port)).is_ok(),
            || std::fs::read_to_string(&log).unwrap_or_default(),
        );
    }

    /// SIGKILL.
    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// What it had stored is gone.
    pub(super) fn lose_disk(&mut self) {
        self.kill();
        std::fs::remove_dir_all(self.folder.path().join("store")).unwrap();
    }

    /// Asks it something as a client that may do everything.
    pub(super) fn with_client<T>(
        &self,
        work: impl AsyncFnOnce(async_nats::jetstream::Context) -> T,
    ) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let client = async_nats::connect(self.url()).await.unwrap();
            let mut context = async_nats::jetstream::new(client);
            context.set_timeout(Duration::from_secs(10));
            work(context).await
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The processes that a process started.
pub(super) fn children(pid: u32) -> Vec<u32> {
    // Each thread lists those that it started itself.
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let lists = threads
        .flatten()
        .map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    let parse = |text: String| -> Vec<u32> {
        let words = text.split_whitespace();
        words.filter_map(|word| word.parse().ok()).collect()
    };
    lists.flat_map(parse).collect()
}
