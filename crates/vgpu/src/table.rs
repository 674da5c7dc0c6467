//! Hash tables that are asked millions of times a launch, by numbers that nobody chooses to harm.

use std::collections::{HashMap, HashSet};

/// A table by numbers.
pub(crate) type Table<K, V> = HashMap<K, V, foldhash::fast::FixedState>;
/// A set of numbers.
pub(crate) type Numbers<K> = HashSet<K, foldhash::fast::FixedState>;
