//! The hashes that stored rows are found by.

use crate::golden::root;
use std::fmt::Write as _;
use tuner_device::limits;
use tuner_kernel::catalog::{Catalog, Kernel};
use tuner_kernel::compile::render_bound;
use tuner_space::Config;

/// Of each shipped space its template's hash, and for each problem the identity of the default
/// configuration. Not of machine code: that is the compiler's.
#[test]
fn the_default_configuration_of_every_shipped_space_keeps_its_identity() {
    let catalog = Catalog::of_folder(&root().join("search_spaces")).unwrap();
    let limits = limits::by_name("h100").unwrap();
    let mut text = String::new();
    for stem in catalog.stems() {
        let kernel = Kernel::load(catalog.file_of(stem).unwrap()).unwrap();
        let spec = &kernel.spec;
        writeln!(text, "{stem}: template {}", kernel.template.hash.as_str()).unwrap();
        let defaults: Vec<_> = spec.parameters.iter().map(|one| one.default).collect();
        for problem in spec.problems.iter().chain(&spec.check_problems) {
            let binder = spec.binder(&problem.name, &limits).unwrap();
            let bound = binder.bind(&Config::new(defaults.clone())).unwrap();
            let source = render_bound(&kernel.template, &bound, "sm_90");
            let identity = source.identity(crate::golden::NVRTC);
            writeln!(text, "  {}: {}", problem.name, identity.as_str()).unwrap();
        }
    }
    insta::assert_snapshot!(text);
}

/// What a kernel's version has besides its template's hash: all that decides a judgement.
#[test]
fn the_reference_of_every_shipped_space_keeps_its_identity() {
    let catalog = Catalog::of_folder(&root().join("search_spaces")).unwrap();
    let mut text = String::new();
    for stem in catalog.stems() {
        let kernel = Kernel::load(catalog.file_of(stem).unwrap()).unwrap();
        let hash = tuner_engine::job::reference_hash(&kernel);
        writeln!(text, "{stem}: {}", hash.as_str()).unwrap();
    }
    insta::assert_snapshot!(text);
}
