//! Results whose template or search space was edited since the measurement.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use tuner_core::record::DeviceKind;
use tuner_engine::job::{definition, reference_hash};
use tuner_kernel::catalog::{Catalog, Kernel};
use tuner_store::Board;

/// Cache of the current kernels on disk; each file is read once.
#[derive(Default)]
pub(super) struct Present {
    catalog: Option<Option<Catalog>>,
    read: HashMap<PathBuf, Option<Kernel>>,
}

impl Present {
    /// Returns a board's current kernel: at the path where it was tuned, else in the project around
    /// the working directory. `None` for recordings, and for missing or unreadable files.
    pub(super) fn kernel(&mut self, board: &Board) -> Option<&Kernel> {
        if board.device_kind == DeviceKind::Replay {
            return None;
        }
        let path = match board.space_path.clone().filter(|path| path.is_file()) {
            Some(path) => path,
            None => self.in_catalog(&board.key.kernel)?,
        };
        let entry = self.read.entry(path);
        let kernel = entry.or_insert_with_key(|path| Kernel::load_in(path, Path::new(".")).ok());
        // The file may contain another kernel by now.
        kernel
            .as_ref()
            .filter(|found| found.spec.kernel == board.key.kernel)
    }

    fn in_catalog(&mut self, name: &str) -> Option<PathBuf> {
        let catalog = self.catalog.get_or_insert_with(|| {
            let folder = std::env::current_dir().ok()?;
            Catalog::find(&folder).ok()
        });
        let file = catalog.as_ref()?.file_of(name).ok()?;
        Some(file.to_owned())
    }

    /// Marks rows with a known template state as current or edited.
    pub(super) fn mark(&mut self, boards: &mut [Board]) {
        for board in boards {
            let Some(kernel) = self.kernel(board) else {
                continue;
            };
            let template = kernel.template.hash.to_string();
            let reference = reference_hash(kernel).to_string();
            let compared = board.reference_hash.as_ref();
            let recompared = compared.is_some_and(|then| *then != reference);
            let present = definition(&kernel.spec);
            let admits = (!present.has_rules_of(&board.definition))
                .then(|| tuner_report::admitted_by(&present, board));
            for row in &mut board.rows {
                let then = row.template_hash.as_ref();
                let forbidden = admits.as_ref().is_some_and(|admits| !admits(&row.config));
                row.stale = then.map(|then| *then != template || recompared || forbidden);
            }
        }
    }
}

/// Warns once for each kernel whose template was edited since.
pub(super) fn warn(boards: &[Board]) {
    let mut told: Vec<&str> = Vec::new();
    for board in boards {
        let kernel = board.key.kernel.as_str();
        let stale = board.rows.iter().any(|row| row.stale == Some(true));
        if stale && !told.contains(&kernel) {
            told.push(kernel);
            say!(
                "warning: stale: the template of {kernel} was edited since these results, or what its search space \
                 says of data, launches, checks or valid configurations; `tuner run {kernel}` tunes what is there now"
            );
        }
    }
}
