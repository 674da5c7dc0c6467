//! Splits the parameters of a space into groups that share no constraint, and builds each.

use super::SpaceError;
use super::build::{Failure, Group};
use super::construct::Resolved;
use super::diagram::{Diagram, Reducer};
use super::expr::{Bits, Op, Program, Term, TermId, Val};
use super::parameter::Parameter;
use super::set::{Empty, Rule};
use std::collections::{HashMap, HashSet};

/// Builds the diagrams of a space.
pub(super) struct Builder<'a> {
    pub(super) resolved: Resolved,
    pub(super) parameters: &'a [Parameter],
    pub(super) rules: &'a [Rule],
}

impl Builder<'_> {
    /// The groups' diagrams, and why they are empty if they are.
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

    /// Finds the constraint that leaves nothing: alone, or with those before it.
    fn blame(&mut self, roots: &[TermId]) -> Empty {
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
                    None => {
                        let reason = "no configuration satisfies all constraints".to_owned();
                        return Empty { reason, rule: None };
                    }
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
        let constants = conjuncts.clone();
        conjuncts.retain(|root| self.resolved.terms.vars(*root).len() > 1);
        let mut diagrams = Vec::new();
        for members in self.groups(&conjuncts) {
            let mut vars = Bits::default();
            for var in &members {
                vars.insert(*var);
            }
            let terms = &self.resolved.terms;
            let mine: Vec<TermId> = conjuncts
                .iter()
                .copied()
                .filter(|root| terms.vars(*root).is_subset(&vars))
                .collect();
            let mut group = Group {
                terms: &mut self.resolved.terms,
                roots: &mine,
                inputs: &self.resolved.inputs,
                domains: &self.resolved.domains,
                allowed: &allowed,
            };
            let diagram = group
                .build(&members)
                .map_err(|failure| self.too_large(failure))?;
            diagrams.push(diagram);
        }
        let terms = &self.resolved.terms;
        let never = |root: &TermId| {
            let value = terms.constant(*root).map(Val::truth);
            value.is_some_and(|truth| truth != Some(true))
        };
        if constants.iter().any(never) {
            diagrams.push(Reducer::new(Vec::new()).finish(None));
        }
        Ok(diagrams)
    }

    /// `a and b` as a whole constraint is two constraints.
    fn split(&self, root: TermId, conjuncts: &mut Vec<TermId>) {
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            match self.resolved.terms.term(id) {
                Term::Op(Op::And, args) => open.extend(args),
                _ => conjuncts.push(id),
            }
        }
    }

    /// For every parameter, the choices that pass the constraints over it alone.
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

    /// Parameters connected by constraints, each group in declared order.
    fn groups(&self, conjuncts: &[TermId]) -> Vec<Vec<u32>> {
        let mut leader: Vec<usize> = (0..self.parameters.len()).collect();
        for root in conjuncts {
            let vars: Vec<u32> = self.resolved.terms.vars(*root).iter().collect();
            let leaders: HashSet<usize> = vars.iter().map(|var| leader[*var as usize]).collect();
            let Some(first) = leaders.iter().min().copied() else {
                continue;
            };
            for each in &mut leader {
                if leaders.contains(each) {
                    *each = first;
                }
            }
        }
        let mut groups: Vec<Vec<u32>> = Vec::new();
        let mut place: HashMap<usize, usize> = HashMap::new();
        for (var, leader) in leader.iter().enumerate() {
            let at = *place.entry(*leader).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[at].push(var as u32);
        }
        groups
    }

    /// Names the open constraint over most parameters.
    fn too_large(&self, failure: Failure) -> SpaceError {
        let Failure::TooLarge { open } = failure else {
            return SpaceError::TooMany;
        };
        let terms = &self.resolved.terms;
        let vars = open
            .iter()
            .map(|root| terms.vars(*root))
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
