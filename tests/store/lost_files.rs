//! The files of an open database, lost under a run.

use super::faults::{rows, sql};
use super::support::{config, key, proven, start, timed};
use std::path::Path;
use tuner_core::record::DeviceKind;
use tuner_store::{RunEnd, Store};

/// Something that happens to the files of an open database.
type Accident = fn(&Path);

#[tokio::test]
async fn files_that_are_lost_are_noticed_within_a_second_without_a_write() {
    let log = |path: &Path| path.with_extension("db-wal");
    fn cut(path: &Path, bytes: u64) {
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_len(bytes).unwrap();
    }
    let accidents: [(&str, Accident, &str); 6] = [
        (
            "unlinked",
            |path| std::fs::remove_file(path.with_extension("db-wal")).unwrap(),
            "integrity_check",
        ),
        (
            "replaced",
            |path| {
                let log = path.with_extension("db-wal");
                let copy = std::fs::read(&log).unwrap();
                std::fs::write(path.with_extension("other"), copy).unwrap();
                std::fs::rename(path.with_extension("other"), log).unwrap();
            },
            "integrity_check",
        ),
        (
            "emptied",
            |path| cut(&path.with_extension("db-wal"), 0),
            "integrity_check",
        ),
        (
            "cut",
            |path| cut(&path.with_extension("db-wal"), 9000),
            "integrity_check",
        ),
        (
            "moved",
            |path| std::fs::rename(path, path.with_extension("moved")).unwrap(),
            "put it back",
        ),
        (
            "copied over",
            |path| {
                std::fs::copy(path, path.with_extension("other")).unwrap();
                std::fs::rename(path.with_extension("other"), path).unwrap();
            },
            "put it back",
        ),
    ];
    for (name, lose, words) in accidents {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.db");
        let store = Store::open(&path).await.unwrap();
        let start = start(DeviceKind::Cuda);
        let run = store.begin_run(start.clone()).await.unwrap();
        let submit = async |sequence: u64| {
            let config = config(i64::try_from(sequence).unwrap(), 0);
            let trial = timed(&start, sequence, config, 1.0 + sequence as f64);
            store
                .submit(&run, &key(&start), proven(trial))
                .await
                .unwrap()
                .await
        };
        for sequence in 0..3 {
            submit(sequence).await.unwrap();
        }
        let mut loss = store.loss();
        assert!(loss.borrow().is_none(), "{name}");
        lose(&path);
        let noticed = loss.wait_for(Option::is_some);
        let noticed = tokio::time::timeout(std::time::Duration::from_secs(1), noticed).await;
        let error = noticed.expect(name).unwrap().clone().unwrap();
        assert!(error.to_string().contains(words), "{name}: {error}");
        // Nothing more is announced.
        submit(3).await.unwrap_err();
        if name == "unlinked" {
            // What was announced before is brought into the database while its log is still open.
            let copy = directory.path().join("copy.db");
            std::fs::copy(&path, &copy).unwrap();
            assert!(!log(&copy).exists());
            assert_eq!(rows(&copy).await.unwrap(), 3);
        }
    }
}

#[tokio::test]
async fn a_checkpoint_of_another_process_is_no_loss() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.db");
    let store = Store::open(&path).await.unwrap();
    let start = start(DeviceKind::Cuda);
    let run = store.begin_run(start.clone()).await.unwrap();
    for sequence in 0..8 {
        let config = config(i64::try_from(sequence).unwrap(), 0);
        let trial = timed(&start, sequence, config, 1.0);
        let stored = store
            .submit(&run, &key(&start), proven(trial))
            .await
            .unwrap();
        stored.await.unwrap();
        let command = if sequence % 2 == 0 {
            "PRAGMA wal_checkpoint(TRUNCATE)"
        } else {
            "PRAGMA wal_checkpoint(RESTART)"
        };
        sql(&path, command).await;
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        assert!(store.loss().borrow().is_none(), "{sequence}");
    }
    store.finish_run(&run, RunEnd::Finished).await.unwrap();
    store.close().await.unwrap();
    assert_eq!(rows(&path).await.unwrap(), 8);
}
