//! Build script: `sqlx::migrate!` embeds the files of the top folder `migrations/`, and Cargo
//! does not detect a new file there.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
