//! Data shared by the parts of an exported header.

use super::names::MacroName;
use std::collections::BTreeSet;
use tuner_core::entry::Entry;
use tuner_core::escape::CComment;

/// Data shared by the parts of the header.
pub(super) struct Plan<'e> {
    pub(super) kernel: CComment,
    /// Prefix in lower case, `gemm_tuned`; the upper-case one is `GEMM_TUNED_`.
    pub(super) lower: String,
    pub(super) upper: String,
    pub(super) entries: &'e [Entry],
    /// Parameter names with their member and C type.
    pub(super) parameters: Vec<Column>,
    /// Problem sizes with their member and C type.
    pub(super) sizes: Vec<Column>,
    /// A name for each launch.
    pub(super) launches: Vec<String>,
    /// Prefix of temporaries.
    pub(super) temporary: String,
    /// The first entry with each configuration.
    pub(super) instances: Vec<usize>,
    /// The rules and launches of each entry.
    pub(super) codes: Vec<EntryCode>,
    /// The product of the sizes must be below 2^53.
    pub(super) bounded: bool,
}

/// A column of the table.
pub(super) struct Column {
    pub(super) name: MacroName,
    pub(super) member: String,
    pub(super) c_type: &'static str,
    /// A size that must match exactly rather than approximately.
    pub(super) exact: bool,
}

/// The code of one entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct EntryCode {
    /// Temporaries of the conditions.
    pub(super) statements: Vec<String>,
    pub(super) conditions: Vec<Condition>,
    pub(super) launches: Vec<LaunchCode>,
    /// Its own sizes exceed the range of a lookup: it matches only these.
    pub(super) alone: bool,
    /// Helper functions that the code calls.
    pub(super) helpers: BTreeSet<&'static str>,
    /// Parts that C cannot express, with the reason.
    pub(super) limits: Vec<(String, String)>,
}

/// One condition on the sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) text: String,
    /// The original rule, with its reason.
    pub(super) source: CComment,
}

/// A launch for the requested sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LaunchCode {
    /// Temporaries of the values.
    pub(super) statements: Vec<String>,
    /// Condition, blocks, threads, dynamic shared memory, blocks of a cluster if [`Plan::has_clusters`], and the
    /// limit of shared memory, as C arguments.
    pub(super) arguments: Vec<String>,
    /// Reports whether the configuration performs the launch for some sizes.
    pub(super) happens: bool,
}

impl Plan<'_> {
    /// Reports whether a launch specifies a cluster, so that launches have a member for it.
    pub(super) fn has_clusters(&self) -> bool {
        let launches = self.entries.iter();
        let mut launches = launches.flat_map(|entry| &entry.definition.launches);
        launches.any(|launch| launch.cluster.is_some())
    }
}
