use super::bounds;

fn module(shared: u64, directive: &str) -> String {
    format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .shared .align 16 .b8 tile[{shared}];\n\
         .visible .entry k()\n{directive}\n{{\n.shared .align 4 .b8 inner[64];\nret;\n}}\n"
    )
}

#[test]
fn a_bound_of_threads_is_read_and_shared_memory_beyond_48_kib_is_left_to_the_assembler() {
    let threads = |shared, directive| {
        let text = module(shared, directive);
        let module = ptx::parse(&text).unwrap();
        bounds(&module).map(|found| (found.threads["k"], found.static_shared))
    };
    assert_eq!(threads(1024, ".maxntid 32, 4, 1"), Some((128, 1108)));
    assert_eq!(threads(1024, ".reqntid 64"), Some((64, 1108)));
    assert_eq!(threads(1024, ""), Some((0, 1108)));
    assert_eq!(threads((48 << 10) - 64, ".maxntid 128"), None);
}
