//! Construction of a group's diagram: layer by layer from the top with equal states merged and
//! constraints checked at their last parameter, then reduced from the bottom.
#![expect(
    clippy::indexing_slicing,
    reason = "registers, slots and choices are numbered by the program and the layers that are built here"
)]

use super::SpaceError;
use super::diagram::{Diagram, Reducer, TERMINAL};
use super::expr::{Bits, Program, TermId, Val};
use super::frontier::{frontier, order, splits};
use super::group::Group;
use super::interval::Abs;
use super::outlook::Outlook;
use super::states::{Mixer, NONE, States, Table};
use std::hash::{Hash as _, Hasher as _};

/// Maximum memory for the construction of a group, bytes.
const MAX_BYTES: usize = 400 << 20;

impl Group<'_> {
    /// Builds the diagram of the parameters in `vars`.
    pub(super) fn build(&mut self, vars: &[u32]) -> Result<Diagram, SpaceError> {
        let order = order(self.terms, self.roots, vars, self.bits);
        let mut fixed = Bits::default();
        let mut states = States::new(0);
        states.push(&mut Vec::new());
        let mut layers: Vec<Vec<u32>> = Vec::new();
        let mut slots: Vec<TermId> = Vec::new();
        let mut bytes = 0;
        for var in &order {
            let layer = self.layer(*var, &mut fixed, &slots);
            let (children, next) = self.expand(&layer, &states, &mut bytes)?;
            layers.push(children);
            states = next;
            slots = layer.slots;
        }
        self.reduce(&order, &layers)
    }

    /// Compiles the choice of `var` after the parameters in `fixed`.
    fn layer(&mut self, var: u32, fixed: &mut Bits, before: &[TermId]) -> Layer {
        let earlier = fixed.clone();
        fixed.insert(var);
        let alive: Vec<TermId> = self
            .roots
            .iter()
            .copied()
            .filter(|root| !self.terms.vars(*root).is_subset(&earlier))
            .collect();
        // A constraint is checked in the layer of its last parameter. Later layers do not depend on its
        // operands, so more states merge.
        let (closing, open): (Vec<TermId>, Vec<TermId>) = alive
            .iter()
            .partition(|root| self.terms.vars(**root).is_subset(fixed));
        let slots = frontier(self.terms, &open, fixed);
        let known: Vec<TermId> = alive.iter().chain(&slots).copied().collect();
        let splits_before = splits(self.terms, &known, &earlier);
        let mut inputs = before.to_vec();
        inputs.push(self.inputs[var as usize]);
        // One phase per constraint: a choice that fails a constraint skips the steps of the rest.
        let mut phases: Vec<&[TermId]> = closing.chunks(1).collect();
        phases.push(&slots);
        let program = Program::compile(self.terms, &phases, &inputs, &splits_before);
        let splits_after = splits(self.terms, &open, fixed);
        let outlook = Outlook::new(self, &open, &slots, &splits_after, fixed);
        Layer {
            var,
            slots,
            alive,
            closing: closing.len(),
            program,
            outlook,
        }
    }

    /// Computes the next state of each state and choice, and the set of those states.
    fn expand(
        &self,
        layer: &Layer,
        from: &States,
        bytes: &mut usize,
    ) -> Result<(Vec<u32>, States), SpaceError> {
        let allowed = &self.allowed[layer.var as usize];
        let domain = &self.domains[layer.var as usize];
        let transitions = from.len() * allowed.len();
        *bytes += transitions * size_of::<u32>();
        // Checked before the work: the number of transitions is known here.
        if *bytes > MAX_BYTES {
            return Err(self.too_large(&layer.alive));
        }
        let mut next = Merger::new(layer);
        let mut children = Vec::with_capacity(transitions);
        let mut registers = layer.program.registers();
        for state in 0..from.len() {
            let values = from.get(state);
            registers[..values.len()].clone_from_slice(values);
            for choice in allowed {
                registers[values.len()] = domain[*choice as usize].clone();
                children.push(if layer.passes(&mut registers) {
                    next.state(layer, &registers)
                } else {
                    NONE
                });
            }
            if next.bytes() > MAX_BYTES {
                return Err(self.too_large(&layer.alive));
            }
        }
        Ok((children, next.states))
    }

    /// Merges nodes with equal children, from the last layer to the first.
    fn reduce(&self, order: &[u32], layers: &[Vec<u32>]) -> Result<Diagram, SpaceError> {
        let mut reducer = Reducer::new(order.iter().map(|var| *var as usize).collect());
        // The only state after the last layer.
        let mut nodes: Vec<Option<u32>> = vec![Some(TERMINAL)];
        for (var, children) in order.iter().zip(layers).rev() {
            let allowed = &self.allowed[*var as usize];
            let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(allowed.len());
            let mut above = Vec::with_capacity(children.len() / allowed.len().max(1));
            for row in children.chunks(allowed.len().max(1)) {
                pairs.clear();
                for (choice, child) in allowed.iter().zip(row) {
                    if let Some(Some(node)) = nodes.get(*child as usize) {
                        pairs.push((*choice, *node));
                    }
                }
                above.push(reducer.node(&pairs)?);
            }
            nodes = above;
        }
        let root = nodes.first().copied().flatten();
        Ok(reducer.finish(root))
    }

    /// Reports the constraint with the most parameters among those that keep too many states distinct.
    fn too_large(&self, open: &[TermId]) -> SpaceError {
        let vars = open
            .iter()
            .map(|root| self.terms.vars(*root))
            .max_by_key(|vars| vars.len())
            .cloned()
            .unwrap_or_default();
        let names: Vec<&str> = vars
            .iter()
            .map(|var| self.parameters[var as usize].name.as_str())
            .collect();
        let rule = self.rules.iter().find(|rule| {
            let mut all = Bits::default();
            rule.program.vars.iter().for_each(|var| all.insert(*var));
            vars.is_subset(&all)
        });
        SpaceError::TooCoupled {
            rule: rule.map_or_else(String::new, |rule| rule.text.clone()),
            parameters: names.len(),
            names: names.join(", "),
        }
    }
}

/// Choice of one parameter: values to compute, to check and to pass on.
struct Layer {
    var: u32,
    /// Terms whose values form the state after the choice.
    slots: Vec<TermId>,
    /// Constraints that earlier layers left undecided.
    alive: Vec<TermId>,
    /// Number of constraints decided by this choice: the first phases of the program.
    closing: usize,
    program: Program,
    outlook: Outlook,
}

impl Layer {
    /// Runs the program; returns false at the first violated constraint.
    #[inline]
    fn passes(&self, registers: &mut [Val]) -> bool {
        let mut done = 0;
        for (phase, end) in self.program.ends.iter().enumerate() {
            for step in &self.program.steps[done..*end] {
                registers[step.dst as usize] = step.run(registers);
            }
            done = *end;
            if phase < self.closing {
                let value = &registers[self.program.outputs[phase] as usize];
                // A cleared slot represents constraints that hold for every completion.
                if !matches!(value, Val::Unset) && value.truth() != Some(true) {
                    return false;
                }
            }
        }
        true
    }
}

/// Interning table of a layer's states.
struct Merger {
    states: States,
    canonical: Table,
    /// States before the outlook cleared slots: a repeated state is not judged again.
    raw: Table,
    raw_values: Vec<Val>,
    raw_states: Vec<u32>,
    scratch: Vec<Val>,
    ranges: Vec<Abs>,
}

impl Merger {
    fn new(layer: &Layer) -> Self {
        Self {
            states: States::new(layer.slots.len()),
            canonical: Table::new(),
            raw: Table::new(),
            raw_values: Vec::new(),
            raw_states: Vec::new(),
            scratch: Vec::new(),
            ranges: layer.outlook.registers(),
        }
    }

    fn bytes(&self) -> usize {
        self.states.bytes()
            + self.canonical.bytes()
            + self.raw.bytes()
            + self.raw_values.len() * size_of::<Val>()
            + self.raw_states.len() * size_of::<u32>()
    }

    fn state(&mut self, layer: &Layer, registers: &[Val]) -> u32 {
        let outputs = &layer.program.outputs[layer.closing..];
        let width = outputs.len();
        let mut hasher = Mixer::new(width as u64);
        for output in outputs {
            registers[*output as usize].hash(&mut hasher);
        }
        let raw_values = &self.raw_values;
        let found = self.raw.find(hasher.finish(), |index| {
            let known = &raw_values[index as usize * width..][..width];
            known
                .iter()
                .zip(outputs)
                .all(|(known, output)| *known == registers[*output as usize])
        });
        let place = match found {
            Ok(index) => return self.raw_states[index as usize],
            Err(place) => place,
        };
        self.raw.insert(place, hasher.finish());
        self.raw_values.extend(
            outputs
                .iter()
                .map(|output| registers[*output as usize].clone()),
        );
        let state = self.canonical_state(layer, width);
        self.raw_states.push(state);
        state
    }

    /// Returns the state of the values last appended to `raw_values`, or `NONE` if it has no valid
    /// completion.
    fn canonical_state(&mut self, layer: &Layer, width: usize) -> u32 {
        let start = self.raw_values.len() - width;
        let state = &mut self.scratch;
        state.clear();
        state.extend_from_slice(&self.raw_values[start..]);
        // A state without a valid completion is dropped here, before later layers multiply it.
        if !layer.outlook.judge(&mut self.ranges, state) {
            return NONE;
        }
        let mut hasher = Mixer::new(width as u64);
        for value in state.iter() {
            value.hash(&mut hasher);
        }
        let states = &self.states;
        let found = self.canonical.find(hasher.finish(), |index| {
            states.get(index as usize) == &state[..]
        });
        match found {
            Ok(index) => index,
            Err(place) => {
                self.canonical.insert(place, hasher.finish());
                self.states.push(state)
            }
        }
    }
}
