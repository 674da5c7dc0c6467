//! Whether a judgement is the one that a case's header asks for.

use std::collections::BTreeSet;

use super::case::Case;
use super::judge::Judgement;
use vgpu::Hazard;

/// What is wrong with the judgement of a wrong kernel.
pub(crate) fn wrong_kernel(case: &Case, judgement: &Judgement) -> Result<(), String> {
    if !case.verdicts.contains(&judgement.verdict) {
        return Err(format!(
            "verdict {}, expected {}\n{}",
            judgement.verdict,
            case.verdicts.join(" or "),
            listing(judgement)
        ));
    }
    for hazard in &judgement.hazards {
        lines(case, hazard).map_err(|e| format!("{e}\n{}", listing(judgement)))?;
    }
    Ok(())
}

/// Every hazard names a marked line, and a pair of lines names a `HAZARD` and marked company.
fn lines(case: &Case, hazard: &Hazard) -> Result<(), String> {
    let kind = hazard.kind.name();
    let expected = case.verdicts.iter().any(|v| v == kind);
    // The reader of a race may also be the first to see bytes that are not there yet.
    let company = kind == "uninitialized" && case.verdicts.iter().any(|v| v == "race");
    if !expected && !company {
        return match case.also.iter().any(|a| a == kind) {
            true => Ok(()),
            false => Err(format!("unexpected hazard {kind}")),
        };
    }
    let Some(source) = &hazard.source else {
        return Err(format!("{kind} without a source line"));
    };
    let marked = |line| case.hazard_lines.contains(&line) || case.conflict_lines.contains(&line);
    let other = hazard.other.as_ref().map(|s| s.line);
    let pair = [Some(source.line), other];
    if !pair.iter().flatten().all(|&line| marked(line)) {
        return Err(format!("{kind} at {pair:?}, which is not marked"));
    }
    if !pair
        .iter()
        .flatten()
        .any(|line| case.hazard_lines.contains(line))
    {
        return Err(format!("{kind} at {pair:?}, none of them a HAZARD line"));
    }
    if kind == "race" && other.is_none() {
        return Err("a race without the line it conflicts with".to_owned());
    }
    Ok(())
}

/// What is wrong with the judgement of a right kernel: its verdict, or what it is warned of.
pub(crate) fn right_kernel(case: &Case, judgement: &Judgement) -> Result<(), String> {
    match judgement.verdict.as_str() {
        "ok" => {
            let warned: BTreeSet<u32> = judgement
                .warnings
                .iter()
                .flat_map(|w| [w.source.as_ref(), w.other.as_ref()])
                .flatten()
                .map(|source| source.line)
                .collect();
            match warned == case.warning_lines {
                true => Ok(()),
                false => Err(format!(
                    "warned of lines {warned:?}, expected {:?}",
                    case.warning_lines
                )),
            }
        }
        other => Err(format!(
            "verdict {other}, expected ok\n{}",
            listing(judgement)
        )),
    }
}

/// The lines of the first hazard of the verdict, as in `12 (with 15)`.
pub(crate) fn place(judgement: &Judgement) -> String {
    let hazard = judgement
        .hazards
        .iter()
        .find(|h| h.kind.name() == judgement.verdict);
    let Some(Hazard {
        source: Some(source),
        other,
        ..
    }) = hazard
    else {
        return String::new();
    };
    match other {
        Some(other) => format!("{} (with {})", source.line, other.line),
        None => source.line.to_string(),
    }
}

fn listing(judgement: &Judgement) -> String {
    let mut text = format!("    {}", judgement.detail);
    for h in &judgement.hazards {
        let line = |s: &Option<vgpu::SourceLine>| s.as_ref().map_or(0, |s| s.line);
        text += &format!(
            "\n    {} line {} with {} ptx {} block {:?} thread {:?} {} {:#x} x{}: {}",
            h.kind.name(),
            line(&h.source),
            line(&h.other),
            h.ptx_line,
            h.block,
            h.thread,
            h.space,
            h.address,
            h.repeated,
            h.detail
        );
    }
    text
}
