//! `sqlx::migrate!` embeds the files of `migrations/`, and Cargo alone does not notice a new one.

fn main() {
    println!("cargo:rerun-if-changed=migrations");
}
