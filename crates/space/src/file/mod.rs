//! Search space files: YAML text to a checked [`KernelSpec`], with the position of every error.

mod bare;
mod check;
mod de;
mod fills;
mod forms;
mod launch;
mod loose_list;
mod maps;
mod node;
mod origin;
mod parameters;
mod peers;
mod python;
mod read;
mod reference;
mod schema;
mod texts;
mod types;
mod variables;
mod vocabulary;
mod weight;

pub use bare::BareSpace;
pub(crate) use origin::Origin;
pub use origin::{ArgumentPlace, Places};
pub use schema::json_schema;
pub use vocabulary::is_kernel_name;

use super::{Diagnostics, KernelSpec};
use std::path::Path;

impl KernelSpec {
    /// Reads and checks a search space file. `path` names the file in messages, and its folder is the base
    /// of paths in it. Accesses no file.
    ///
    /// # Errors
    /// All errors of the text.
    pub fn parse(text: &str, path: &Path) -> Result<Self, Diagnostics> {
        let failed = |items| Diagnostics::new(path.display().to_string(), text, items);
        let node = node::read(text).map_err(|item| {
            let item = if text.trim().is_empty() {
                item.help("a kernel's file has the keys version, kernel, source, problems, parameters, arguments, launches and reference")
            } else {
                item
            };
            failed(vec![item])
        })?;
        let document = schema::Document::read(&node, text).map_err(failed)?;
        check::spec(document, text, path).map_err(failed)
    }
}
