//! Lists the files of the top folder `migrations/`, so that they are embedded: their versions, descriptions
//! and texts, as sqlx derives them from names such as `20251121120000_first_schema.sql`.

use std::error::Error;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let root = std::env::var("CARGO_MANIFEST_DIR")?;
    let folder = Path::new(&root).join("../../migrations");
    println!("cargo:rerun-if-changed={}", folder.display());
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|end| end == "sql"));
    paths.sort();
    let mut list = String::from("[\n");
    for path in paths {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let named = stem.split_once('_');
        let (version, description) =
            named.ok_or_else(|| format!("{stem} is not VERSION_description"))?;
        let version: i64 = version.parse()?;
        let description = description.replace('_', " ");
        list += &format!("    ({version}, {description:?}, include_str!({path:?})),\n");
    }
    list += "]\n";
    let out = std::env::var("OUT_DIR")?;
    std::fs::write(Path::new(&out).join("migrations.rs"), list)?;
    Ok(())
}
