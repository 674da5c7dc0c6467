use super::{RawResult, RawStatus, executed_lines, restore_paths, with_external_arrays};
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

#[test]
fn line_information_comments_and_debug_sections_are_not_executed() {
    let bare = ".version 8.0\nadd.s32 %r1, %r2, 1;\nret;\n";
    let ptx = "//\n.version 8.0\n\t.file\t1 \"a.cu\"\n\t.loc\t1 2 3, function_name $L1, inlined_at 1 5 7\n\
               \tadd.s32 \t%r1, %r2, 1;\n\tret;\n\t.section\t.debug_str\n\t{\n$L1:\n.b8 1,2\n\t}\n";
    let ptx = ptx.replace("\tadd.s32 \t", "add.s32 ");
    let lines: Vec<_> = executed_lines(&ptx).collect();
    assert_eq!(lines, bare.lines().collect::<Vec<_>>());
}

#[test]
fn a_shared_array_that_the_source_declares_extern_is_extern_in_ptx_too() {
    let log = "k.cu(3): warning #20044-D: extern declaration of the entity s is treated as a static \
               definition\n";
    let ptx =
        "\t// demoted variable\n\t.shared .align 4 .b8 s[4096];\n\t.shared .align 4 .b8 ss[8];\n";
    let marked = with_external_arrays(ptx, log);
    assert_eq!(
        marked,
        ptx.replace(
            "\t.shared .align 4 .b8 s[",
            ".extern .shared .align 4 .b8 s["
        )
    );
    assert_eq!(with_external_arrays(ptx, ""), ptx);
}
