//! Tables of GPUs: the built-in ones are valid, and invalid figures are reported with their
//! position.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should fail")]

use std::path::Path;
use vgpu::Arch;
use vgpu::arch::{list_gpus, read};

fn tables() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("arch");
    let files = std::fs::read_dir(folder).unwrap();
    files
        .map(|file| file.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .filter(|(name, _)| name.ends_with(".toml"))
        .collect()
}

#[test]
fn every_table_in_the_program_is_right() {
    let tables = tables();
    for (file, text) in &tables {
        let arch = read(file, text).unwrap();
        assert_eq!(format!("{}.toml", arch.name), *file);
    }
    assert_eq!(list_gpus().len(), tables.len());
}

#[test]
fn a_figure_that_no_gpu_can_have_is_named_with_its_line() {
    let (_, text) = tables()
        .into_iter()
        .find(|(name, _)| name == "l4.toml")
        .unwrap();
    let wrong = text.replace("boost_mhz = 2040", "boost_mhz = -5");
    let error = read("x.toml", &wrong).unwrap_err();
    assert_eq!((error.line, error.column), (6, 13), "{error}");
    let lines = text.lines().filter(|l| !l.starts_with("dram_gb_s"));
    let missing = lines.collect::<Vec<_>>().join("\n");
    let error = read("x.toml", &missing).unwrap_err().to_string();
    assert!(error.contains("`dram_gb_s` is missing"), "{error}");
    let bare = text.replace("cc = 89 #", "cc = 89 ");
    assert!(read("x.toml", &bare).is_err());
}

#[test]
fn a_name_with_a_clock_is_the_gpu_at_that_clock() {
    let table = Arch::by_name("h100").unwrap();
    let slow = Arch::by_name("h100@1500MHz").unwrap();
    assert_eq!((slow.name, slow.boost_mhz), ("h100@1500MHz", 1500));
    assert_eq!(slow.dram_gb_s, table.dram_gb_s);
    assert_eq!(slow.tensor_mhz, 1500);
    // 637 cycles beyond the L2 cache at 1830 MHz are 522 at 1500 MHz.
    assert_eq!(slow.dram_cycles, slow.l2_cycles + 522);
    let again = Arch::by_name("h100@1500mhz").unwrap();
    assert!(std::ptr::eq(slow, again), "one table for each clock");
}

#[test]
fn an_invalid_clock_is_refused_with_what_to_write() {
    for clock in [
        "", "1500", "99MHz", "5001MHz", "1.5GHz", "-500MHz", "+500MHz", "fast",
    ] {
        let error = Arch::find(&format!("h100@{clock}")).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(&format!("invalid clock `{clock}`")), "{text}");
        assert!(text.contains("such as vgpu:h100@1500MHz"), "{text}");
    }
    let error = Arch::find("h300@1500MHz").unwrap_err().to_string();
    assert_eq!(error, "no GPU is called `h300`");
}

#[test]
fn the_least_time_is_that_of_bytes_beyond_the_cache_or_of_the_cache() {
    let arch = Arch::by_name("l4").unwrap();
    let least = |bytes: f64| arch.least_us(0.0, bytes, false);
    // 8 MB in the L2 cache, at 3.1 TB/s.
    assert!((2.0..3.5).contains(&least(8.4e6)), "{}", least(8.4e6));
    // 134 MB of softmax, of which the L2 cache holds 50 MB.
    assert!((200.0..400.0).contains(&least(134e6)), "{}", least(134e6));
    let [vector, matrix] = [false, true].map(|tensor| arch.least_us(1e9, 0.0, tensor));
    assert!(matrix < vector && matrix > 0.0, "{matrix} {vector}");
}
