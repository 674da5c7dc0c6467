//! State of a comparison with the reference: the covered part of the timed problem.

use crate::named::named;

named! {
    /// Comparison of a passed candidate's results with the reference at the size of the timed
    /// problem. Ordered by strength.
    pub enum Compared {
        /// All blocks ran, and every output was compared.
        Whole,
        /// A sample of the blocks ran, and their writes to every output were compared.
        Sampled,
        /// Not compared at this size: smaller problems were compared.
        SmallerProblems,
        /// Stored by a version that did not record it.
        Unknown,
    }
}

impl Compared {
    /// Returns the rank class: times of class 0 rank before all times of class 1.
    #[must_use]
    pub fn rank_class(self) -> u8 {
        self.properties().rank_class
    }

    /// Returns the state as text, for messages and exported files.
    #[must_use]
    pub fn describe(self) -> &'static str {
        self.properties().words
    }

    /// Returns the consequences of a state; the only such table. The triggers of the migration
    /// `compared` repeat the rank classes in SQL (`classes_agree_with_sql` in the store).
    fn properties(self) -> Properties {
        let (rank_class, words) = match self {
            Self::Whole => (0, "all blocks ran, and every output was compared"),
            Self::Sampled => (
                0,
                "a sample of the blocks ran, and what it wrote was compared",
            ),
            Self::SmallerProblems => (1, "only results of smaller problems were compared"),
            Self::Unknown => (1, "stored by a version that did not note it"),
        };
        Properties { rank_class, words }
    }
}

/// Consequences of a state.
struct Properties {
    rank_class: u8,
    words: &'static str,
}

/// Returns the rank class of a stored time. Recorded times have no state and rank among themselves.
#[must_use]
pub fn rank_class(compared: Option<Compared>) -> u8 {
    compared.map_or(0, Compared::rank_class)
}
