//! Memory of a device: tracking of written bytes.

use vgpu::GlobalMemory;

#[test]
fn exactly_the_bytes_that_were_written_are_known_as_written() {
    for start in [0_u64, 1, 31, 32, 33, 63] {
        for end in [start, start + 1, start + 5, 64, 65, 96, 99] {
            let mut memory = GlobalMemory::new(1 << 20);
            let buffer = memory.alloc(100, "buffer").unwrap();
            let bytes = vec![7; (end - start) as usize];
            memory.write(buffer, start, &bytes);
            let unwritten: Vec<u64> = memory.unwritten(buffer).flatten().collect();
            let expected: Vec<u64> = (0..start).chain(end..100).collect();
            assert_eq!(unwritten, expected, "{start}..{end}");
        }
    }
}
