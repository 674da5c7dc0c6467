-- The best of many noisy times is too good. What was timed again at the end of a run, in a fresh
-- process and against the other finalists, is what counts; the first time stays beside it.
CREATE TABLE final_times (
    verdict      INTEGER PRIMARY KEY REFERENCES verdicts (id) ON DELETE CASCADE,
    p50_us       REAL NOT NULL CHECK (p50_us > 0),
    p90_us       REAL NOT NULL CHECK (p90_us > 0),
    ci_low_us    REAL NOT NULL CHECK (ci_low_us > 0),
    ci_high_us   REAL NOT NULL CHECK (ci_high_us > 0),
    protocol     TEXT NOT NULL,
    sample_count INTEGER NOT NULL,
    samples_us   TEXT NOT NULL,
    timed_at     TEXT NOT NULL
) STRICT;

-- The time of a verdict that counts.
CREATE VIEW times AS
SELECT m.verdict, m.kind, m.reused,
       iif(f.verdict IS NULL, 'race', 'final') AS stage,
       coalesce(f.p50_us, m.p50_us) AS p50_us,
       coalesce(f.p90_us, m.p90_us) AS p90_us,
       coalesce(f.ci_low_us, m.ci_low_us) AS ci_low_us,
       coalesce(f.ci_high_us, m.ci_high_us) AS ci_high_us,
       coalesce(f.protocol, m.protocol) AS protocol,
       coalesce(f.sample_count, m.sample_count) AS sample_count,
       coalesce(f.samples_us, m.samples_us) AS samples_us
FROM measurements m LEFT JOIN final_times f ON f.verdict = m.verdict;
