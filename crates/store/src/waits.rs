//! Message about a write that waits for another process.

use std::path::Path;
use std::pin::pin;
use std::time::Duration;

/// Maximum wait of a statement for another process's transaction. Transactions of this program last
/// milliseconds; a minute bridges a laptop's sleeping disk, after which a message is more useful
/// than a longer wait.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

/// Time after which a wait is reported: a commit on a slow disk takes less.
const NOTICE: Duration = Duration::from_secs(2);

/// Awaits a write, and logs that it waits if it takes long.
pub(super) async fn report_wait<T>(path: &Path, write: impl Future<Output = T>) -> T {
    let mut write = pin!(write);
    if let Ok(done) = tokio::time::timeout(NOTICE, &mut write).await {
        return done;
    }
    tracing::warn!(
        "{}: waiting for at most {} s: another process may keep the database locked",
        path.display(),
        BUSY_TIMEOUT.as_secs()
    );
    write.await
}
