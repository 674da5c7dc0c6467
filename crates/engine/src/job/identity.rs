//! Identity of everything besides the code that decides a candidate's judgement.

use std::collections::BTreeSet;
use tuner_core::units::ContentHash;
use tuner_judge::gate::oracle;
use tuner_kernel::catalog::Kernel;
use tuner_space::{Argument, Expr, KernelSpec, Launch, Parameter, Reference};

/// Returns the identity of everything that affects a judgement, except the candidate's code and the
/// problem's sizes. It covers arguments and their data, launches, check problems, the reference with its
/// code or its version, and tolerances.
pub fn reference_hash(kernel: &Kernel) -> ContentHash {
    let spec = &kernel.spec;
    let mut texts = arguments(spec);
    for launch in &spec.launches {
        let when = launch.when.as_ref().map(Expr::text);
        texts.push(format!("{} {:?} {when:?}", launched(launch), launch.args));
    }
    for problem in &spec.check_problems {
        texts.push(format!("{} {:?}", problem.name, problem.sizes));
    }
    texts.extend(reference(kernel));
    let amounts = [&spec.terms, &spec.flops, &spec.bytes];
    let amounts = amounts.map(|amount| amount.as_ref().map(Expr::text));
    texts.push(format!("{:?} {amounts:?}", spec.gate));
    texts.extend(derived(spec, &texts));
    ContentHash::from_parts(texts.iter().map(String::as_bytes))
}

/// Describes the arguments and variables with their data. Files count by content, those of all problems
/// combined, not by path.
fn arguments(spec: &KernelSpec) -> Vec<String> {
    let plain = |argument: &Argument| {
        let (name, ty, role, fill) = (&argument.name, argument.ty, argument.role, &argument.fill);
        let shape: Vec<&str> = argument.shape.iter().map(Expr::text).collect();
        let value = argument.value.as_ref().map(Expr::text);
        // A fill equal to the default one still limits the numbers.
        let any_value = if argument.any_value { " any_value" } else { "" };
        format!("{name:?} {ty:?} {role:?} {fill:?} {shape:?} {value:?}{any_value}")
    };
    let composed = |argument: &&Argument| {
        argument.record.is_some() || !argument.pieces.is_empty() || !argument.fill_sizes.is_empty()
    };
    let whole = spec.arguments.iter().filter(composed);
    let whole = whole
        .chain(&spec.variables)
        .map(|argument| format!("{:?}", with_stored_offset(argument)));
    spec.arguments.iter().map(plain).chain(whole).collect()
}

/// Returns an argument with the address of a tensor map at its place in stored identities, which the encoding of
/// maps does not change.
fn with_stored_offset(argument: &Argument) -> Argument {
    const STORED_OFFSET: u64 = 10;
    let mut argument = argument.clone();
    if argument.tensor_map().is_some()
        && let Some(address) = argument.pieces.last_mut()
    {
        address.offset = STORED_OFFSET;
    }
    argument
}

fn launched(launch: &Launch) -> String {
    let extents = launch.grid.iter().chain(&launch.block).map(Expr::text);
    let extents: Vec<&str> = extents.collect();
    let cluster = launch.cluster.iter().flatten().map(Expr::text);
    let cluster: Vec<&str> = cluster.collect();
    let (entry, shared, together) = (&launch.entry, launch.shared.text(), launch.cooperative);
    format!("{entry} {extents:?} {shared} {cluster:?} {together}")
}

/// Describes the reference.
fn reference(kernel: &Kernel) -> Vec<String> {
    let spec = &kernel.spec;
    let mut texts = vec![match &spec.reference {
        Reference::Oracle(name) => format!("{name} {}", oracle::version(name)),
        Reference::None => "none".to_owned(),
        Reference::Values {
            accepted_as: Some(name),
            ..
        } => format!("accepted as {name:?}"),
        Reference::Values { files, .. } => format!("{files:?}"),
        Reference::Kernel {
            launch, proven_by, ..
        } => format!("{} {proven_by:?}", launched(launch)),
    }];
    if let Some(reference) = &kernel.reference {
        texts.push(reference.hash.to_string());
        // The reference is compiled with the macros of the default configuration, so those that it mentions
        // decide its result.
        let mut derived = spec.derived.iter();
        let derived = derived.any(|(name, _)| reference.mentions(name));
        let decides = |parameter: &&Parameter| derived || reference.mentions(&parameter.name);
        for parameter in spec.parameters.iter().filter(decides) {
            let value = parameter.values.get(parameter.default as usize);
            texts.push(format!("{}={value:?}", parameter.name));
        }
    }
    texts
}

/// Describes the derived values that texts name, directly or through other derived values. All derived
/// values are also macros, which are part of the candidate's code.
fn derived(spec: &KernelSpec, texts: &[String]) -> Vec<String> {
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| c != '_' && !c.is_alphanumeric());
        words.map(str::to_owned).collect()
    };
    let mut named: BTreeSet<String> = texts.iter().flat_map(|text| words(text)).collect();
    let mut found = BTreeSet::new();
    loop {
        let before = found.len();
        for (name, value) in &spec.derived {
            if named.contains(name) && found.insert(format!("{name}={}", value.text())) {
                named.extend(words(value.text()));
            }
        }
        if found.len() == before {
            return found.into_iter().collect();
        }
    }
}

#[cfg(test)]
mod tests;
