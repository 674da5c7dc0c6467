//! Lists the files of the top folder `migrations/`, so that they are embedded: their versions,
//! descriptions and texts, as sqlx takes them from names such as `20251121120000_first_schema.sql`.

use std::path::Path;

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("Cargo sets it");
    let folder = Path::new(&root).join("../../migrations");
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries = std::fs::read_dir(&folder).expect("the folder of migrations");
    let mut paths: Vec<_> = entries.map(|it| it.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "sql"));
    paths.sort();
    let mut list = String::from("[\n");
    for path in paths {
        let stem = path.file_stem().expect("a name").to_string_lossy();
        let (version, description) = stem.split_once('_').expect("VERSION_description.sql");
        let version: i64 = version.parse().expect("a version of digits");
        let description = description.replace('_', " ");
        list += &format!("    ({version}, {description:?}, include_str!({path:?})),\n");
    }
    list += "]\n";
    let out = std::env::var("OUT_DIR").expect("Cargo sets it");
    std::fs::write(Path::new(&out).join("migrations.rs"), list).expect("the list is written");
}
