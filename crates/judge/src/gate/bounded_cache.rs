//! Cache of values by key with a memory limit; the least recently used value is evicted first.

use std::collections::HashMap;
use std::hash::Hash;

/// Values with a limit of their total memory.
pub(super) struct BoundedCache<K, V> {
    most: u64,
    tick: u64,
    values: HashMap<K, Entry<V>>,
}

struct Entry<V> {
    value: V,
    bytes: u64,
    used: u64,
}

impl<K: Hash + Eq + Clone, V> BoundedCache<K, V> {
    pub(super) fn new(most: u64) -> Self {
        Self {
            most,
            tick: 0,
            values: HashMap::new(),
        }
    }

    pub(super) fn get(&mut self, key: &K) -> Option<&V> {
        self.tick += 1;
        let entry = self.values.get_mut(key)?;
        entry.used = self.tick;
        Some(&entry.value)
    }

    /// Returns a value without marking it as used.
    pub(super) fn peek(&self, key: &K) -> Option<&V> {
        self.values.get(key).map(|entry| &entry.value)
    }

    /// Stores a value of this size. The new value itself is never evicted, even if it exceeds the limit.
    pub(super) fn insert(&mut self, key: K, value: V, bytes: u64) {
        self.tick += 1;
        let entry = Entry {
            value,
            bytes,
            used: self.tick,
        };
        self.values.insert(key.clone(), entry);
        self.make_room(&key);
    }

    /// Removes and returns a value.
    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        self.values.remove(key).map(|entry| entry.value)
    }

    /// Updates the size of each value.
    pub(super) fn weigh(&mut self, spared: &K, bytes: impl Fn(&V) -> u64) {
        for entry in self.values.values_mut() {
            entry.bytes = bytes(&entry.value);
        }
        self.make_room(spared);
    }

    fn make_room(&mut self, spared: &K) {
        let mut bytes: u64 = self.values.values().map(|entry| entry.bytes).sum();
        while bytes > self.most {
            let others = self.values.iter().filter(|(key, _)| *key != spared);
            let Some(oldest) = others.min_by_key(|(_, entry)| entry.used) else {
                return;
            };
            let (oldest, freed) = (oldest.0.clone(), oldest.1.bytes);
            self.values.remove(&oldest);
            bytes -= freed;
        }
    }
}

#[cfg(test)]
mod tests;
