//! The suite's door to NVRTC.

use super::case::Case;

pub(crate) struct Compilers(std::path::PathBuf);

impl Compilers {
    pub(crate) fn find() -> Option<Compilers> {
        Some(Compilers(std::env::var_os("TUNER_HAZARDS_PTX")?.into()))
    }

    pub(crate) fn ptx(&self, case: &Case) -> Result<String, String> {
        let path = self.0.join(format!("{}.{}.ptx", case.name, case.arch));
        std::fs::read_to_string(path).map_err(|e| e.to_string())
    }
}
