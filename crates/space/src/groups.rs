//! Partition of a space's parameters into groups without common constraints, and their
//! construction.

use super::SpaceError;
use super::diagram::{Diagram, Reducer};
use super::expr::{Op, Program, Term, TermId, Val};
use super::group::Group;
use super::parameter::Parameter;
use super::resolved::Resolved;
use super::set::{Empty, Rule};
use std::collections::HashMap;

/// Maximum parameters of a group: each choice checks all constraints of the group.
pub(super) const MAX_COUPLED: usize = 1024;
/// Maximum product of parameters and constraints for a search for the constraint that empties the space:
/// the search builds a space for each.
const MAX_BLAMED: usize = 4_000_000;

/// Builder of a space's diagrams.
pub(super) struct Builder<'a> {
    pub(super) resolved: Resolved,
    pub(super) parameters: &'a [Parameter],
    pub(super) rules: &'a [Rule],
}

impl Builder<'_> {
    /// Builds the groups' diagrams; also returns the reason of an empty space.
    pub(super) fn diagrams(
        mut self,
        roots: &[TermId],
    ) -> Result<(Vec<Diagram>, Option<Empty>), SpaceError> {
        let diagrams = self.build(roots)?;
        if diagrams.iter().all(|diagram| diagram.count() > 0) {
            return Ok((diagrams, None));
        }
        let reason = self.blame(roots);
        Ok((diagrams, Some(reason)))
    }

    /// Finds the constraint that empties the space: alone, or in combination with earlier ones.
    #[expect(
        clippy::indexing_slicing,
        reason = "parameters, their domains and allowed choices are lists of one length, and rules one of the constraints"
    )]
    fn blame(&mut self, roots: &[TermId]) -> Empty {
        let unknown = || Empty {
            reason: "no configuration satisfies all constraints".to_owned(),
            rule: None,
        };
        if roots.len().saturating_mul(self.parameters.len()) > MAX_BLAMED {
            return unknown();
        }
        let mut empty = |roots: &[TermId]| {
            self.build(roots)
                .is_ok_and(|diagrams| diagrams.iter().any(|diagram| diagram.count() == 0))
        };
        let alone = (0..roots.len()).find(|at| empty(&roots[*at..=*at]));
        let (at, together) = match alone {
            Some(at) => (at, ""),
            None => {
                let all = (0..roots.len()).find(|at| empty(&roots[..=*at]));
                match all {
                    Some(at) => (at, " together with the constraints before it"),
                    None => return unknown(),
                }
            }
        };
        let rule = &self.rules[at];
        let why = rule
            .why
            .as_ref()
            .map_or_else(String::new, |why| format!(" ({why})"));
        Empty {
            reason: format!(
                "no configuration satisfies the constraint `{}`{why}{together}",
                rule.text
            ),
            rule: Some(at),
        }
    }

    fn build(&mut self, roots: &[TermId]) -> Result<Vec<Diagram>, SpaceError> {
        let mut conjuncts = Vec::new();
        for root in roots {
            self.split(*root, &mut conjuncts);
        }
        conjuncts.sort_unstable();
        conjuncts.dedup();
        let allowed = self.allowed(&conjuncts);
        let bits = allowed
            .iter()
            .map(|choices| (choices.len() as f64).max(1.0).log2());
        let bits: Vec<f64> = bits.collect();
        let constants = conjuncts.clone();
        conjuncts.retain(|root| self.resolved.terms.vars(*root).len() > 1);
        let mut diagrams = Vec::new();
        for (members, mine) in self.groups(&conjuncts) {
            if members.len() > MAX_COUPLED {
                return Err(SpaceError::TooManyCoupled(members.len()));
            }
            let mut group = Group {
                terms: &mut self.resolved.terms,
                parameters: self.parameters,
                rules: self.rules,
                roots: &mine,
                inputs: &self.resolved.inputs,
                domains: &self.resolved.domains,
                allowed: &allowed,
                bits: &bits,
            };
            diagrams.push(group.build(&members)?);
        }
        let terms = &self.resolved.terms;
        let never = |root: &TermId| {
            let value = terms.constant(*root).map(Val::truth);
            value.is_some_and(|truth| truth != Some(true))
        };
        if constants.iter().any(never) {
            // A constraint without parameters is in no group; an empty diagram makes the count 0.
            diagrams.push(Reducer::new(Vec::new()).finish(None));
        }
        Ok(diagrams)
    }

    /// Splits a constraint `a and b` into two.
    fn split(&self, root: TermId, conjuncts: &mut Vec<TermId>) {
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            match self.resolved.terms.term(id) {
                // Operands of `and` may share no parameters, and then are in separate, smaller groups.
                Term::Op(Op::And, args) => open.extend(args),
                _ => conjuncts.push(id),
            }
        }
    }

    /// Returns, for every parameter, the choices that satisfy the constraints on it alone.
    #[expect(
        clippy::indexing_slicing,
        reason = "parameters, their domains and allowed choices are lists of one length, and rules one of the constraints"
    )]
    fn allowed(&mut self, conjuncts: &[TermId]) -> Vec<Vec<u32>> {
        let mut allowed: Vec<Vec<u32>> = self
            .parameters
            .iter()
            .map(|parameter| (0..parameter.values.len() as u32).collect())
            .collect();
        for root in conjuncts {
            let vars: Vec<u32> = self.resolved.terms.vars(*root).iter().collect();
            let [var] = vars[..] else { continue };
            let program = Program::over_config(&mut self.resolved.terms, &[*root]);
            let mut registers = program.registers();
            let domain = &self.resolved.domains[var as usize];
            allowed[var as usize].retain(|choice| {
                registers[0] = domain[*choice as usize].clone();
                program.run(&mut registers);
                registers[program.outputs[0] as usize].truth() == Some(true)
            });
        }
        allowed
    }

    /// Returns the groups of connected parameters in declared order, each with its constraints.
    fn groups(&self, conjuncts: &[TermId]) -> Vec<(Vec<u32>, Vec<TermId>)> {
        let mut leaders = Leaders::new(self.parameters.len());
        for root in conjuncts {
            let mut vars = self.resolved.terms.vars(*root).iter();
            if let Some(first) = vars.next() {
                vars.for_each(|var| leaders.join(first, var));
            }
        }
        let mut groups: Vec<(Vec<u32>, Vec<TermId>)> = Vec::new();
        let mut place: HashMap<u32, usize> = HashMap::new();
        for var in 0..self.parameters.len() as u32 {
            let at = *place.entry(leaders.find_leader(var)).or_insert_with(|| {
                groups.push((Vec::new(), Vec::new()));
                groups.len() - 1
            });
            if let Some((members, _)) = groups.get_mut(at) {
                members.push(var);
            }
        }
        for root in conjuncts {
            let var = self.resolved.terms.vars(*root).iter().next();
            let at = var.and_then(|var| place.get(&leaders.find_leader(var)));
            if let Some((_, mine)) = at.and_then(|at| groups.get_mut(*at)) {
                mine.push(*root);
            }
        }
        groups
    }
}

/// Union-find forest of connected parameters: all parameters below a root form one group.
struct Leaders(Vec<u32>);

impl Leaders {
    fn new(count: usize) -> Self {
        Self((0..count as u32).collect())
    }

    /// Returns the group's first parameter. Halves paths during the search to keep them short.
    fn find_leader(&mut self, mut var: u32) -> u32 {
        while let Some(above) = self.above(var).filter(|above| *above != var) {
            let next = self.above(above).unwrap_or(above);
            if let Some(link) = self.0.get_mut(var as usize) {
                *link = next;
            }
            var = next;
        }
        var
    }

    fn above(&self, var: u32) -> Option<u32> {
        self.0.get(var as usize).copied()
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find_leader(a), self.find_leader(b));
        if let Some(link) = self.0.get_mut(a.max(b) as usize) {
            *link = a.min(b);
        }
    }
}
