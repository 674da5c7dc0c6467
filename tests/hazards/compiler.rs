//! The suite's compiler: the product's own, in this process and without a cache.

use std::sync::Arc;

use tuner_core::plan::PlanLaunch;
use tuner_kernel::compile::{Compiler, CompilerSettings, Isolation, Template, render};

use super::case::Case;

/// NVRTC, found as the product finds it.
pub(crate) struct Compilers(Compiler);

impl Compilers {
    /// `None` where `TUNER_NO_NVRTC` says that there need not be one.
    ///
    /// # Panics
    /// When there is none although there should be.
    pub(crate) fn find() -> Option<Compilers> {
        let settings = CompilerSettings {
            cache: None,
            isolation: Isolation::InProcess,
            ..CompilerSettings::default()
        };
        match Compiler::new(settings) {
            Ok(compiler) => Some(Compilers(compiler)),
            Err(_) if std::env::var_os("TUNER_NO_NVRTC").is_some_and(|v| v == "1") => None,
            Err(missing) => panic!("{missing}"),
        }
    }

    /// PTX and machine code of a case, or the compiler's log.
    pub(crate) fn code(&self, case: &Case) -> Result<(Arc<str>, Arc<[u8]>), String> {
        let file = format!("{}.cu", case.name);
        let template = Template::new(&file, &case.text, case.headers.clone(), vec![]);
        let launches: Vec<PlanLaunch> = case
            .launches
            .iter()
            .map(|launch| PlanLaunch {
                shared_bytes: launch.shared,
                ..PlanLaunch::new(&*launch.entry, [1; 3], [1; 3], Vec::new())
            })
            .collect();
        let source = render(&template, &[], &case.options, &launches, &case.arch);
        match self.0.compile(&source).map_err(|e| e.to_string())? {
            Ok(image) => Ok((image.ptx.clone(), image.cubin.clone())),
            Err(failed) => Err(failed.to_string()),
        }
    }
}
