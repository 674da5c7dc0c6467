use super::{RawResult, RawStatus, restore_paths};
use std::path::Path;

#[test]
fn the_templates_path_is_restored_in_file_directives_only() {
    let ptx = "\t.file\t1 \"/srv/t/kernel.cu\"\n// \"/srv/t/kernel.cu\"\n";
    assert_eq!(
        restore_paths(ptx, &["t/kernel.cu".to_owned()], Path::new("/srv")),
        "\t.file\t1 \"t/kernel.cu\"\n// \"/srv/t/kernel.cu\"\n"
    );
}

#[test]
fn parts_that_are_no_result_are_refused() {
    assert_eq!(
        RawResult::from_parts(vec![b"{}".to_vec(), Vec::new(), Vec::new()]),
        None
    );
    assert_eq!(RawResult::from_parts(vec![Vec::new()]), None);
    let result = RawResult::new(RawStatus::Broken, "why".into());
    let head = serde_json::to_vec(&result.head).unwrap();
    let parts = vec![head, result.ptx.clone(), result.cubin.clone()];
    assert_eq!(RawResult::from_parts(parts), Some(result));
}
