use crate::captured::CapturedData;
use crate::captured::arguments::Work;
use crate::captured::infer::Names;
use crate::captured::problems::{Problem, Problems};
use crate::captured::values::layout;
use capture::{Buffer, BufferContents, Capture, Document, Launch, Limits, Writer};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the text of the variable `low` if the launches had these values in it.
fn constant(values: &[f32]) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let limits = Limits {
        launches: 8,
        bytes: 1 << 20,
    };
    let writer = Writer::create(folder.path(), limits, Document::default()).expect("a writer");
    for value in values {
        let launch = Launch {
            kernel: "k".to_owned(),
            ..Launch::default()
        };
        let low = BufferContents {
            buffer: Buffer {
                variable: Some("low".to_owned()),
                bytes: 4,
                ..Buffer::default()
            },
            before: Some(value.to_le_bytes().to_vec()),
            ..BufferContents::default()
        };
        writer.add(launch, vec![low]);
    }
    let capture = Capture::open(folder.path()).expect("a capture");
    let all = capture.launches("k").map(|launch| Problem {
        name: String::new(),
        capture: &capture,
        launch,
        names: Names::new(),
    });
    let problems = Problems {
        all: all.collect(),
        scalars: BTreeMap::new(),
        parameters: BTreeSet::new(),
    };
    assert_eq!(problems.all.len(), values.len());
    let work = Work {
        kernel: "k".to_owned(),
        problems: &problems,
        data: &mut CapturedData::default(),
        names: BTreeMap::new(),
        notes: BTreeSet::new(),
        extents: BTreeMap::new(),
    };
    let layout = layout("f32").expect("a layout");
    work.constant("low", &layout).expect("contents")
}

#[test]
fn a_variable_has_a_value_where_all_launches_had_one_that_can_be_written() {
    assert_eq!(constant(&[2.0]).as_deref(), Some("2"));
    assert_eq!(constant(&[2.0, 2.0]).as_deref(), Some("2"));
    assert_eq!(constant(&[2.0, 3.0]), None);
    assert_eq!(constant(&[f32::NEG_INFINITY]), None);
    assert_eq!(constant(&[2.0, f32::NAN]), None);
}
