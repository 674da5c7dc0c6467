//! Conversion of rows to trials.

use super::hash_from_bytes;
use super::text::{Config, samples_from_text};
use crate::details::unpacked;
use crate::evidence::evidence_from_row;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;
use sqlx::types::{Json, Text};
use tuner_core::judgement::Judgement;
use tuner_core::record::{Compared, Compilation, Measurement, TrialRecord};
use tuner_core::units::{ContentHash, Micros};

/// Columns that [`trial_from_row`] reads, with their joins. `$final` selects the times of final comparisons
/// that replace those of the search. The times are those of the view `times`, expanded: SQLite materializes
/// a view with joins on the right of LEFT JOIN.
macro_rules! trial_columns {
    ($final:literal) => {
        concat!(
            "SELECT v.id AS verdict_id, v.sequence, v.verdict, v.detail, v.max_error, v.compared,
        v.charged_us, v.origin, v.judged_at, c.hash, c.config, k.template_hash, x.cubin_hash, x.nvrtc_version,
        x.arch, x.registers, x.spill_bytes, x.stack_bytes, x.shared_bytes, x.compile_us,
        x.ptx_bytes, x.sass_bytes, m.kind, m.reused,
        coalesce(f.p50_us, m.p50_us) AS p50_us, coalesce(f.p90_us, m.p90_us) AS p90_us,
        coalesce(f.ci_low_us, m.ci_low_us) AS ci_low_us,
        coalesce(f.ci_high_us, m.ci_high_us) AS ci_high_us,
        coalesce(f.protocol, m.protocol) AS protocol,
        coalesce(f.samples_us, m.samples_us) AS samples_us,
        e.cache, e.launches, e.cycles, e.clock_mhz, e.reference, e.reference_us, e.ratios, e.flags,
        e.other_cache, e.other_p50_us, e.other_p90_us, e.other_low_us, e.other_high_us,
        e.other_samples, e.gate, w.energy_mj, w.energy_low_mj, w.energy_high_mj, w.energies_mj,
        n.body AS counters, l.body AS long_detail,
        (SELECT json_group_array(json(body) ORDER BY ordinal) FROM hazards WHERE verdict = v.id)
            AS hazards
     FROM verdicts v
     JOIN tasks t ON t.id = v.task
     JOIN candidates c ON c.id = v.candidate
     JOIN problems p ON p.id = c.problem
     JOIN kernels k ON k.id = p.kernel
     LEFT JOIN compilations x ON x.candidate = c.id
     LEFT JOIN measurements m ON m.verdict = v.id
     LEFT JOIN final_times f ON ",
            $final,
            "
     LEFT JOIN timing_evidence e ON e.verdict = v.id
         AND e.stage = iif(f.verdict IS NULL, 'race', 'final')
     LEFT JOIN timing_evidence w ON w.verdict = v.id AND w.stage = 'race'
     LEFT JOIN counters n ON n.verdict = v.id
     LEFT JOIN long_details l ON l.verdict = v.id "
        )
    };
}

/// Columns of trials with their valid times.
pub(crate) const TRIAL_COLUMNS: &str = trial_columns!("f.verdict = v.id");
/// Columns of trials with the times of the search, which make all candidates comparable.
pub(crate) const SEARCH_COLUMNS: &str = trial_columns!("FALSE");

/// Reads a trial as submitted; its sequence is `None` if it is only announced.
pub(crate) fn trial_from_row(row: &SqliteRow) -> Result<(Option<u64>, TrialRecord), sqlx::Error> {
    let sequence: Option<u64> = row.try_get("sequence")?;
    let counters: Option<Json<serde_json::Value>> = row.try_get("counters")?;
    let trial = TrialRecord {
        sequence: sequence.unwrap_or(0),
        config: row.try_get::<Config, _>("config")?.into(),
        candidate_hash: hash_from_bytes(row.try_get("hash")?),
        judgement: Judgement {
            verdict: row.try_get::<Text<_>, _>("verdict")?.0,
            hazards: row.try_get::<Json<_>, _>("hazards")?.0,
            warnings: Vec::new(),
            detail: unpacked(row.try_get("detail")?, row.try_get("long_detail")?),
            max_error: row.try_get("max_error")?,
            compared: compared_from_row(row)?,
        },
        compilation: compilation_from_row(row)?,
        measurement: measurement_from_row(row)?,
        charged_us: row.try_get("charged_us")?,
        origin: row.try_get("origin")?,
        counters: counters.map(|counters| counters.0),
    };
    Ok((sequence, trial))
}

/// Reads the comparison of the row's candidate.
pub(crate) fn compared_from_row(row: &SqliteRow) -> Result<Option<Compared>, sqlx::Error> {
    let compared: Option<Text<Compared>> = row.try_get("compared")?;
    Ok(compared.map(|compared| compared.0))
}

fn compilation_from_row(row: &SqliteRow) -> Result<Option<Compilation>, sqlx::Error> {
    let Some(cubin_hash) = row.try_get("cubin_hash")? else {
        return Ok(None);
    };
    let template: Option<String> = row.try_get("template_hash")?;
    let length = |column: &str| -> Result<u64, sqlx::Error> {
        Ok(row.try_get::<Option<u64>, _>(column)?.unwrap_or(0))
    };
    Ok(Some(Compilation {
        template_hash: ContentHash::from_stored(template.unwrap_or_default()),
        cubin_hash: ContentHash::from_stored(cubin_hash),
        nvrtc_version: row.try_get("nvrtc_version")?,
        arch: row.try_get("arch")?,
        registers: row.try_get("registers")?,
        spill_bytes: row.try_get("spill_bytes")?,
        stack_bytes: row.try_get("stack_bytes")?,
        shared_bytes: row.try_get("shared_bytes")?,
        compile_us: row.try_get("compile_us")?,
        ptx_bytes: length("ptx_bytes")?,
        sass_bytes: length("sass_bytes")?,
    }))
}

fn measurement_from_row(row: &SqliteRow) -> Result<Option<Measurement>, sqlx::Error> {
    let Some(Text(kind)) = row.try_get("kind")? else {
        return Ok(None);
    };
    let time = |column: &str| -> Result<Micros, sqlx::Error> {
        let us: f64 = row.try_get(column)?;
        Micros::try_from(us).map_err(|text| sqlx::Error::Decode(text.into()))
    };
    Ok(Some(Measurement {
        kind,
        p50: time("p50_us")?,
        p90: time("p90_us")?,
        ci95: [time("ci_low_us")?, time("ci_high_us")?],
        samples: samples_from_text(row.try_get("samples_us")?),
        protocol: row.try_get("protocol")?,
        reused: row.try_get("reused")?,
        evidence: evidence_from_row(row)?,
    }))
}
