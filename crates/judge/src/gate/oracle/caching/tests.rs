use super::*;
use std::collections::BTreeSet;
use std::thread::ThreadId;

/// Records computed elements and the threads that computed them.
#[derive(Default)]
struct Counting {
    elements: AtomicU64,
    threads: Mutex<BTreeSet<String>>,
}

impl Counting {
    fn note(&self, id: ThreadId, count: u64) {
        self.elements.fetch_add(count, Ordering::Relaxed);
        self.threads.lock().unwrap().insert(format!("{id:?}"));
    }
}

impl Oracle for Counting {
    fn span(&self, _output: usize, start: u64, count: u64) -> Vec<Expected> {
        self.note(std::thread::current().id(), count);
        // As slow as real work, so that every core gets some.
        std::thread::sleep(std::time::Duration::from_millis(5));
        let expected = |at: u64| Expected {
            value: at as f64 * 0.1,
            tolerance: at as f64,
            rms: 1.0 / (at + 1) as f64,
        };
        (start..start + count).map(expected).collect()
    }

    fn tile(&self, _output: usize) -> u64 {
        64
    }

    fn work(&self) -> u64 {
        1 << 20
    }
}

fn means(folder: Option<Arc<CacheFolder>>, progress: Option<Progress>) -> Means {
    Means {
        folder,
        progress,
        memory_bytes: 1 << 20,
    }
}

#[test]
fn a_large_range_is_worked_out_on_all_cores_and_in_order() {
    let counting = Arc::new(Counting::default());
    let oracle = keeping(counting.clone(), String::new(), &means(None, None));
    let all = oracle.span(0, 10, 1000);
    assert_eq!(all, Counting::default().span(0, 10, 1000));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = counting.threads.lock().unwrap().len();
    assert!(threads > 1 || cores == 1, "{threads} of {cores} cores");
}

#[test]
fn tiles_are_remembered_and_shared_by_ranges_that_overlap() {
    let counting = Arc::new(Counting::default());
    let oracle = keeping(counting.clone(), String::new(), &means(None, None));
    let _ = oracle.span(0, 0, 256);
    let _ = (oracle.span(0, 64, 128), oracle.span(0, 0, 256));
    assert_eq!(counting.elements.load(Ordering::Relaxed), 256);
    assert_eq!(oracle.bytes(), 256 * 24);
}

#[test]
fn what_costs_much_is_read_from_disk_by_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    let folder = Some(Arc::new(CacheFolder::new(
        folder.path().to_owned(),
        "oracles",
        1 << 20,
    )));
    let first = Arc::new(Counting::default());
    let told = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&told);
    let progress: Progress = Arc::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
    });
    let with = |oracle: &Arc<Counting>, identity: &str| {
        let means = means(folder.clone(), Some(Arc::clone(&progress)));
        keeping(oracle.clone(), identity.to_owned(), &means).span(0, 0, 512)
    };
    let all = with(&first, "one");
    let second = Arc::new(Counting::default());
    assert_eq!(with(&second, "one"), all);
    assert_eq!(second.elements.load(Ordering::Relaxed), 0);
    let _ = with(&second, "another");
    assert_eq!(second.elements.load(Ordering::Relaxed), 512);
    assert!(told.load(Ordering::Relaxed) >= 2);
}
