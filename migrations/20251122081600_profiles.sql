-- Profiles of single candidates, by a profiler on a real GPU or from the virtual GPU's counters.
-- The newest of each source is kept: a profile is looked at, not averaged.
CREATE TABLE profiles (
    id          INTEGER PRIMARY KEY,
    candidate   INTEGER NOT NULL REFERENCES candidates (id),
    device      INTEGER NOT NULL REFERENCES devices (id),
    source      TEXT NOT NULL CHECK (source IN ('ncu', 'vgpu')),
    -- The profiler and its version.
    tool        TEXT NOT NULL,
    metrics     TEXT NOT NULL CHECK (json_valid(metrics)),
    profiled_at TEXT NOT NULL,
    UNIQUE (candidate, device, source)
) STRICT;
