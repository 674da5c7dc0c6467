//! The decision diagram of one group of parameters that share constraints.
//!
//! A node represents all completions of the choices made so far; an edge represents the choices that lead
//! to the same child. Edges hold the number of completions, so that the set is indexed, sampled and tested
//! without enumeration.
#![expect(
    clippy::indexing_slicing,
    reason = "nodes, edges and choices are numbered as they are pushed, children before parents"
)]

use super::SpaceError;
use super::states::{Mixer, Table};
use rand::{Rng, RngExt as _};
use std::collections::HashMap;
use std::hash::Hasher as _;

/// The node at the end of every complete path.
pub(super) const TERMINAL: u32 = 0;

/// Choices with the same child.
#[derive(Debug, Clone)]
struct Edge {
    child: u32,
    /// Range of the sorted choices in the pool.
    choices: (u32, u32),
    /// Number of completions through earlier edges of the node.
    below: u128,
    /// Number of completions of each choice.
    each: u128,
}

/// A reduced, layered decision diagram; layer `i` decides `vars[i]`.
#[derive(Debug, Clone, Default)]
pub(super) struct Diagram {
    pub(super) vars: Vec<usize>,
    /// First edge of each node, and one past the last node's; children come before parents.
    first: Vec<u32>,
    counts: Vec<u128>,
    edges: Vec<Edge>,
    pool: Vec<u32>,
    /// `None` for an empty set.
    root: Option<u32>,
}

/// Builds a diagram from the last layer to the first and shares equal nodes and lists.
pub(super) struct Reducer {
    diagram: Diagram,
    /// Consecutive pairs of all nodes except the terminal: equal nodes have equal pairs.
    rows: Vec<(u32, u32)>,
    /// End of each node's pairs.
    ends: Vec<usize>,
    known: Table,
    lists: HashMap<Box<[u32]>, (u32, u32)>,
}

impl Reducer {
    pub(super) fn new(vars: Vec<usize>) -> Self {
        Self {
            diagram: Diagram {
                vars,
                // The terminal has no edges and a single, empty completion.
                first: vec![0, 0],
                counts: vec![1],
                ..Diagram::default()
            },
            rows: Vec::new(),
            ends: vec![0],
            known: Table::new(),
            lists: HashMap::new(),
        }
    }

    /// Returns the node with these (choice, child) pairs, sorted by choice; `None` without pairs.
    pub(super) fn node(&mut self, pairs: &[(u32, u32)]) -> Result<Option<u32>, SpaceError> {
        if pairs.is_empty() {
            return Ok(None);
        }
        let mut hasher = Mixer::new(pairs.len() as u64);
        for (choice, child) in pairs {
            hasher.write_u64(u64::from(*choice) << 32 | u64::from(*child));
        }
        let found = self.known.find(hasher.finish(), |index| {
            let index = index as usize;
            self.rows[self.ends[index]..self.ends[index + 1]] == *pairs
        });
        match found {
            // Nodes are numbered from 1; 0 is the terminal.
            Ok(index) => Ok(Some(index + 1)),
            Err(bucket) => {
                self.known.insert(bucket, hasher.finish());
                self.rows.extend_from_slice(pairs);
                self.ends.push(self.rows.len());
                self.add(pairs).map(Some)
            }
        }
    }

    fn list(&mut self, choices: Vec<u32>) -> (u32, u32) {
        if let Some(known) = self.lists.get(&choices[..]) {
            return *known;
        }
        let pool = &mut self.diagram.pool;
        let place = (pool.len() as u32, choices.len() as u32);
        pool.extend_from_slice(&choices);
        self.lists.insert(choices.into(), place);
        place
    }

    /// Adds a node whose edges are sorted by their first choice.
    fn add(&mut self, pairs: &[(u32, u32)]) -> Result<u32, SpaceError> {
        let mut by_child: Vec<(u32, Vec<u32>)> = Vec::new();
        let mut place: HashMap<u32, usize> = HashMap::new();
        for (choice, child) in pairs {
            let at = match by_child.last() {
                Some((last, _)) if last == child => by_child.len() - 1,
                _ => *place.entry(*child).or_insert_with(|| {
                    by_child.push((*child, Vec::new()));
                    by_child.len() - 1
                }),
            };
            by_child[at].1.push(*choice);
        }
        let mut below = 0_u128;
        for (child, choices) in by_child {
            let choices = self.list(choices);
            let diagram = &mut self.diagram;
            let each = diagram.counts[child as usize];
            diagram.edges.push(Edge {
                child,
                choices,
                below,
                each,
            });
            below = each
                .checked_mul(u128::from(choices.1))
                .and_then(|through| below.checked_add(through))
                .ok_or(SpaceError::TooMany)?;
        }
        let diagram = &mut self.diagram;
        diagram.counts.push(below);
        diagram.first.push(diagram.edges.len() as u32);
        Ok(diagram.counts.len() as u32 - 1)
    }

    pub(super) fn finish(mut self, root: Option<u32>) -> Diagram {
        self.diagram.root = root;
        self.diagram.edges.shrink_to_fit();
        self.diagram.pool.shrink_to_fit();
        self.diagram
    }
}

impl Diagram {
    pub(super) fn count(&self) -> u128 {
        self.root.map_or(0, |root| self.counts[root as usize])
    }

    pub(super) fn bytes(&self) -> u64 {
        let bytes = self.edges.capacity() * size_of::<Edge>()
            + self.pool.capacity() * size_of::<u32>()
            + self.counts.capacity() * size_of::<u128>()
            + self.first.capacity() * size_of::<u32>()
            + self.vars.capacity() * size_of::<usize>()
            + size_of::<Self>();
        bytes as u64
    }

    fn edges(&self, node: u32) -> &[Edge] {
        let node = node as usize;
        &self.edges[self.first[node] as usize..self.first[node + 1] as usize]
    }

    fn choices(&self, edge: &Edge) -> &[u32] {
        &self.pool[edge.choices.0 as usize..][..edge.choices.1 as usize]
    }

    /// Returns the edge of a choice, and the position of the choice on it.
    fn find(&self, node: u32, choice: u32) -> Option<(&Edge, usize)> {
        self.edges(node).iter().find_map(|edge| {
            let choices = self.choices(edge);
            let at = if choices.len() == 1 {
                (choices[0] == choice).then_some(0)
            } else {
                choices.binary_search(&choice).ok()
            };
            at.map(|at| (edge, at))
        })
    }

    /// Returns the node reached from `node` in layer `from` by the choices of a configuration.
    fn follow(&self, mut node: u32, from: usize, config: &[u32]) -> Option<u32> {
        for var in &self.vars[from..] {
            node = self.find(node, config[*var])?.0.child;
        }
        Some(node)
    }

    pub(super) fn contains(&self, config: &[u32]) -> bool {
        self.root
            .is_some_and(|root| self.follow(root, 0, config).is_some())
    }

    pub(super) fn index_of(&self, config: &[u32]) -> Option<u128> {
        let mut node = self.root?;
        let mut index = 0;
        for var in &self.vars {
            let (edge, at) = self.find(node, config[*var])?;
            index += edge.below + edge.each * at as u128;
            node = edge.child;
        }
        Some(index)
    }

    /// Writes the choices of configuration `index`, which is below `count`.
    pub(super) fn write(&self, index: u128, config: &mut [u32]) {
        let Some(mut node) = self.root else { return };
        match u64::try_from(index) {
            Ok(mut index) if self.counts[node as usize] <= u128::from(u64::MAX) => {
                // 64 bits suffice in the common case; a 128-bit division would dominate a draw.
                for var in &self.vars {
                    let edges = self.edges(node);
                    let after = edges.partition_point(|edge| edge.below as u64 <= index);
                    let edge = &edges[after - 1];
                    let (rest, each) = (index - edge.below as u64, edge.each as u64);
                    let (at, rest) = if each == 1 {
                        (rest, 0)
                    } else {
                        (rest / each, rest % each)
                    };
                    config[*var] = self.pool[edge.choices.0 as usize + at as usize];
                    index = rest;
                    node = edge.child;
                }
            }
            _ => self.write_wide(node, index, config),
        }
    }

    fn write_wide(&self, mut node: u32, mut index: u128, config: &mut [u32]) {
        for var in &self.vars {
            let edges = self.edges(node);
            let edge = &edges[edges.partition_point(|edge| edge.below <= index) - 1];
            let rest = index - edge.below;
            config[*var] = self.pool[edge.choices.0 as usize + (rest / edge.each) as usize];
            index = rest % edge.each;
            node = edge.child;
        }
    }

    /// Writes a uniformly drawn configuration; the diagram must not be empty.
    pub(super) fn draw(&self, rng: &mut impl Rng, config: &mut [u32]) {
        self.write(below(self.count(), rng), config);
    }

    /// Appends all choices of layer `layer` that leave the configuration valid.
    pub(super) fn alternatives(&self, layer: usize, config: &[u32], found: &mut Vec<u32>) {
        let Some(mut node) = self.root else { return };
        for var in &self.vars[..layer] {
            match self.find(node, config[*var]) {
                Some((edge, _)) => node = edge.child,
                None => return,
            }
        }
        for edge in self.edges(node) {
            if self.follow(edge.child, layer + 1, config).is_some() {
                found.extend_from_slice(self.choices(edge));
            }
        }
        found.sort_unstable();
    }

    /// Draws uniformly among the configurations that agree with the fixed choices and writes the choice of
    /// every parameter of the group; returns false if there are none.
    pub(super) fn complete(
        &self,
        fixed: &[Option<u32>],
        rng: &mut impl Rng,
        config: &mut [u32],
    ) -> bool {
        let Some(root) = self.root else { return false };
        let last = self.vars.iter().rposition(|var| fixed[*var].is_some());
        // After the last fixed layer all choices are allowed, so the stored counts apply; only the layers
        // before need new counts.
        let mut counts = HashMap::new();
        let total = self.completions(root, 0, last.map_or(0, |last| last + 1), fixed, &mut counts);
        if total == 0 {
            return false;
        }
        let mut index = below(total, rng);
        let mut node = root;
        for (layer, var) in self.vars.iter().enumerate() {
            let known = |child: u32| match last {
                Some(last) if layer < last => counts.get(&child).copied().unwrap_or(0),
                _ => self.counts[child as usize],
            };
            for edge in self.edges(node) {
                let each = known(edge.child);
                let choices = self.choices(edge);
                let (offered, first) = match fixed[*var] {
                    Some(choice) => match choices.binary_search(&choice) {
                        Ok(at) => (1, at),
                        Err(_) => continue,
                    },
                    None => (choices.len(), 0),
                };
                let through = each * offered as u128;
                if index < through {
                    config[*var] = choices[first + (index / each) as usize];
                    index %= each;
                    node = edge.child;
                    break;
                }
                index -= through;
            }
        }
        true
    }

    /// Reports whether some configuration agrees with the fixed choices.
    pub(super) fn admits(&self, fixed: &[Option<u32>]) -> bool {
        let Some(root) = self.root else { return false };
        let last = self.vars.iter().rposition(|var| fixed[*var].is_some());
        // Every node has completions: reaching the layer after the last fixed one suffices.
        let mut reached = vec![root];
        for var in &self.vars[..last.map_or(0, |last| last + 1)] {
            let mut next: Vec<u32> = Vec::new();
            for node in reached {
                match fixed[*var] {
                    Some(choice) => {
                        next.extend(self.find(node, choice).map(|(edge, _)| edge.child))
                    }
                    None => next.extend(self.edges(node).iter().map(|edge| edge.child)),
                }
            }
            next.sort_unstable();
            next.dedup();
            reached = next;
        }
        !reached.is_empty()
    }

    /// Counts the completions of a node that agree with the fixed choices before layer `end`.
    fn completions(
        &self,
        node: u32,
        layer: usize,
        end: usize,
        fixed: &[Option<u32>],
        counts: &mut HashMap<u32, u128>,
    ) -> u128 {
        if layer == end {
            return self.counts[node as usize];
        }
        if let Some(known) = counts.get(&node) {
            return *known;
        }
        let mut total = 0;
        for edge in self.edges(node) {
            let choices = self.choices(edge);
            let offered = match fixed[self.vars[layer]] {
                Some(choice) => usize::from(choices.binary_search(&choice).is_ok()),
                None => choices.len(),
            };
            if offered > 0 {
                let each = self.completions(edge.child, layer + 1, end, fixed, counts);
                total += each * offered as u128;
            }
        }
        counts.insert(node, total);
        total
    }
}

/// Draws a number below `count` uniformly; `count` must not be zero.
fn below(count: u128, rng: &mut impl Rng) -> u128 {
    match u64::try_from(count) {
        Ok(1) => 0,
        Ok(count) => u128::from(rng.random_range(0..count)),
        Err(_) => rng.random_range(0..count),
    }
}
