//! `sqlx::migrate!` embeds the files of the top folder `migrations/`, and Cargo alone does not notice a new one.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
