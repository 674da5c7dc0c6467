//! Power loss: what was written since a file's last sync may be there, in part or not at all.

use super::{OPEN, PRINT, Rig, SYNC, TRUNCATE, UNLINK, WRITE, announced};
use crate::run::assert_stored;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::BTreeMap;
use std::path::Path;

/// Bytes that a disk writes whole or not at all.
const SECTOR: usize = 512;

/// One line of the trace.
struct Record {
    operation: i64,
    file: u64,
    offset: usize,
    bytes: Vec<u8>,
}

fn records(trace: &Path) -> Vec<Record> {
    let bytes = std::fs::read(trace).unwrap();
    let mut rest = bytes.as_slice();
    let mut records = Vec::new();
    while rest.len() >= 32 {
        let field = |at: usize| u64::from_le_bytes(rest[8 * at..8 * at + 8].try_into().unwrap());
        let (operation, file, offset) = (field(0), field(1), field(2));
        let operation = i64::try_from(operation).unwrap();
        let has_bytes = [OPEN, WRITE, PRINT].contains(&operation);
        let length = if has_bytes { field(3) as usize } else { 0 };
        let end = 32 + length;
        records.push(Record {
            operation,
            file,
            offset: usize::try_from(offset).unwrap(),
            bytes: rest[32..end].to_vec(),
        });
        rest = &rest[end..];
    }
    records
}

/// What becomes of changes that no sync has made durable.
#[derive(Clone, Copy, Debug)]
enum Unsynced {
    Kept,
    Dropped,
    /// Any of them, whichever came first.
    Some,
    /// Any of their sectors.
    Torn,
}

/// A file: its durable content, and the changes since.
#[derive(Default)]
struct Disk<'a> {
    name: String,
    durable: Vec<u8>,
    pending: Vec<&'a Record>,
    gone: bool,
}

impl<'a> Disk<'a> {
    fn note(&mut self, record: &'a Record) {
        match record.operation {
            OPEN => {
                self.name = String::from_utf8(record.bytes.clone()).unwrap();
                self.gone = false;
            }
            SYNC => {
                for record in std::mem::take(&mut self.pending) {
                    apply(&mut self.durable, record, 0..record.bytes.len());
                }
            }
            UNLINK => {
                *self = Self {
                    name: std::mem::take(&mut self.name),
                    gone: true,
                    ..Self::default()
                };
            }
            _ => self.pending.push(record),
        }
    }

    fn after_power_loss(&self, unsynced: Unsynced, rng: &mut impl rand::Rng) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        for record in &self.pending {
            let whole = 0..record.bytes.len();
            match unsynced {
                Unsynced::Dropped => {}
                Unsynced::Kept => apply(&mut bytes, record, whole),
                Unsynced::Some => {
                    if rng.random() {
                        apply(&mut bytes, record, whole);
                    }
                }
                Unsynced::Torn if record.operation == TRUNCATE => {}
                Unsynced::Torn => {
                    for start in whole.clone().step_by(SECTOR) {
                        if rng.random() {
                            let end = (start + SECTOR).min(whole.end);
                            apply(&mut bytes, record, start..end);
                        }
                    }
                }
            }
        }
        bytes
    }
}

fn apply(bytes: &mut Vec<u8>, record: &Record, part: std::ops::Range<usize>) {
    if record.operation == TRUNCATE {
        bytes.resize(record.offset, 0);
        return;
    }
    let end = record.offset + part.end;
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[record.offset + part.start..end].copy_from_slice(&record.bytes[part]);
}

/// Loses power after every `step`-th record of a run's trace.
fn lose_power(step: usize) -> usize {
    let rig = Rig::new();
    rig.arm(0, 0, 0..0);
    let output = rig.run(&[]).env("FAULTS_TRACE", rig.trace()).output();
    assert!(output.unwrap().status.success());
    let records = records(&rig.trace());
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(5);
    let mut disks: BTreeMap<u64, Disk> = BTreeMap::new();
    let mut printed = Vec::new();
    let mut points = 0;
    for (at, record) in records.iter().enumerate() {
        if record.operation == PRINT {
            printed.extend_from_slice(&record.bytes);
        } else {
            disks.entry(record.file).or_default().note(record);
        }
        // A sync and what follows it are where a promise could be broken.
        let interesting = record.operation == SYNC || record.operation == PRINT;
        if !interesting && at % step != 0 {
            continue;
        }
        let told = announced(&printed);
        for unsynced in [
            Unsynced::Kept,
            Unsynced::Dropped,
            Unsynced::Some,
            Unsynced::Torn,
        ] {
            let folder = tempfile::tempdir().unwrap();
            for disk in disks.values().filter(|disk| !disk.gone) {
                let bytes = disk.after_power_loss(unsynced, &mut rng);
                std::fs::write(folder.path().join(&disk.name), bytes).unwrap();
            }
            if !told.is_empty() {
                assert_stored(&folder.path().join("t.db"), &told);
            }
            points += 1;
        }
    }
    assert!(!announced(&printed).is_empty());
    points
}

#[test]
fn what_was_announced_survives_power_loss() {
    let points = lose_power(9);
    assert!(points > 100, "only {points} points");
}

#[test]
#[ignore = "every moment"]
fn what_was_announced_survives_power_loss_at_every_moment() {
    println!("{} points", lose_power(1));
}
