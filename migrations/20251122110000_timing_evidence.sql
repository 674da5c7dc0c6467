-- How a measured time came to be: cache mode, cycles and clock of every sample, and its ratio to
-- the fixed reference, which is what times of different runs are compared by. `race` is the time
-- taken while searching, `final` the one taken again at the end.
CREATE TABLE timing_evidence (
    verdict       INTEGER NOT NULL REFERENCES verdicts (id) ON DELETE CASCADE,
    stage         TEXT NOT NULL CHECK (stage IN ('race', 'final')),
    cache         TEXT NOT NULL CHECK (cache IN ('warm', 'cold')),
    launches      INTEGER NOT NULL,
    -- JSON arrays, one number a sample; empty where the device cannot tell.
    cycles        TEXT NOT NULL,
    clock_mhz     TEXT NOT NULL,
    -- Machine code and launches of the reference; ratios to different ones are never compared.
    reference     TEXT,
    reference_us  REAL,
    -- JSON array, one ratio a block; its median and the 95 % interval of that.
    ratios        TEXT NOT NULL,
    ratio         REAL,
    ratio_low     REAL,
    ratio_high    REAL,
    flags         TEXT NOT NULL CHECK (json_valid(flags)),
    -- The cache mode that does not rank, where it was timed.
    other_cache   TEXT CHECK (other_cache IN ('warm', 'cold')),
    other_p50_us  REAL,
    other_p90_us  REAL,
    other_low_us  REAL,
    other_high_us REAL,
    other_samples TEXT,
    PRIMARY KEY (verdict, stage)
) STRICT, WITHOUT ROWID;
