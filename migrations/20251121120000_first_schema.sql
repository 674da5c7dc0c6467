-- The first schema. One row a fact, so that every question of the leaderboard, the exports and a
-- resumed run is a query:
--   who and where       devices, provenance
--   what was tuned      kernels (one row a version of the template), problems, definitions
--   what was done       runs, tasks (one kernel and problem of a run), candidates, compilations
--   what came out       verdicts, hazards, measurements
-- STRICT and CHECKs, because a wrong type that gets in comes out years later as a wrong winner.

-- "TUNR": lets `file` and us tell this database from another program's.
PRAGMA application_id = 1414876754;

CREATE TABLE devices (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('cuda', 'vgpu', 'replay')),
    arch        TEXT NOT NULL,
    -- The device's names in expressions (DEVICE_SM_COUNT, …) with their values.
    environment TEXT NOT NULL CHECK (json_valid(environment)),
    -- A recording of an A100 and a real A100 share a name, not a row.
    UNIQUE (name, kind)
) STRICT;

CREATE TABLE provenance (
    id            INTEGER PRIMARY KEY,
    git_commit    TEXT,
    dirty         INTEGER NOT NULL CHECK (dirty IN (0, 1)),
    host          TEXT NOT NULL,
    tuner_version TEXT NOT NULL,
    driver        TEXT,
    nvrtc_version TEXT
) STRICT;

CREATE TABLE kernels (
    id            INTEGER PRIMARY KEY,
    name          TEXT NOT NULL,
    -- The template's hash, or `recording:` and the hash of the recorded file.
    version       TEXT NOT NULL,
    template_hash TEXT,
    -- An edited template is another kernel: it never inherits an old time.
    UNIQUE (name, version)
) STRICT;

CREATE TABLE problems (
    id     INTEGER PRIMARY KEY,
    kernel INTEGER NOT NULL REFERENCES kernels (id),
    name   TEXT NOT NULL,
    sizes  TEXT NOT NULL CHECK (json_valid(sizes)),
    -- A problem whose sizes changed is another problem, whatever it is called.
    UNIQUE (kernel, name, sizes)
) STRICT;

-- Parameters, derived values and constraints as they were, so that an export needs no other file.
CREATE TABLE definitions (
    id   INTEGER PRIMARY KEY,
    body TEXT NOT NULL UNIQUE CHECK (json_valid(body))
) STRICT;

CREATE TABLE runs (
    id             INTEGER PRIMARY KEY,
    name           TEXT NOT NULL UNIQUE,
    device         INTEGER NOT NULL REFERENCES devices (id),
    selector       TEXT NOT NULL,
    recording_path TEXT,
    recording_hash TEXT,
    -- Decimal text: a seed is 64 bits unsigned, an INTEGER here is signed.
    seed           TEXT NOT NULL,
    strategy       TEXT NOT NULL,
    settings       TEXT NOT NULL CHECK (json_valid(settings)),
    state          TEXT NOT NULL CHECK (state IN ('running', 'interrupted', 'failed', 'finished')),
    -- The process that drives it; a `running` run whose owner is gone was killed.
    owner          TEXT,
    started_at     TEXT NOT NULL,
    ended_at       TEXT
) STRICT;

CREATE TABLE tasks (
    id             INTEGER PRIMARY KEY,
    run            INTEGER NOT NULL REFERENCES runs (id),
    problem        INTEGER NOT NULL REFERENCES problems (id),
    definition     INTEGER NOT NULL REFERENCES definitions (id),
    default_config TEXT CHECK (default_config IS NULL OR json_valid(default_config)),
    UNIQUE (run, problem)
) STRICT;

-- From a problem to the runs that tuned it: the leaderboard of one kernel among many.
CREATE INDEX tasks_by_problem ON tasks (problem);

CREATE TABLE candidates (
    id      INTEGER PRIMARY KEY,
    problem INTEGER NOT NULL REFERENCES problems (id),
    -- SHA-256 as 32 bytes, hex(hash) to read it: half the index of the text, which every insert
    -- walks at a random place.
    hash    BLOB NOT NULL,
    config  TEXT NOT NULL CHECK (json_valid(config)),
    UNIQUE (problem, hash)
) STRICT;

CREATE TABLE compilations (
    candidate     INTEGER PRIMARY KEY REFERENCES candidates (id),
    cubin_hash    TEXT NOT NULL,
    nvrtc_version TEXT NOT NULL,
    arch          TEXT NOT NULL,
    registers     INTEGER NOT NULL,
    spill_bytes   INTEGER NOT NULL,
    stack_bytes   INTEGER NOT NULL,
    shared_bytes  INTEGER NOT NULL,
    compile_us    INTEGER NOT NULL
) STRICT;

CREATE TABLE verdicts (
    id         INTEGER PRIMARY KEY,
    task       INTEGER NOT NULL REFERENCES tasks (id),
    candidate  INTEGER NOT NULL REFERENCES candidates (id),
    provenance INTEGER NOT NULL REFERENCES provenance (id),
    -- Place in the order told to the search. Null: announced before a launch that never came back.
    sequence   INTEGER,
    verdict    TEXT NOT NULL CHECK (verdict IN (
        'ok', 'rejected', 'compile_failed', 'launch_failed', 'out_of_bounds', 'misaligned',
        'barrier_divergence', 'deadlock', 'race', 'uninitialized', 'timeout', 'crashed',
        'out_of_memory', 'nondeterministic', 'implausible', 'incorrect', 'unsupported')),
    detail     TEXT NOT NULL,
    max_error  REAL,
    charged_us INTEGER NOT NULL,
    origin     TEXT NOT NULL,
    judged_at  TEXT NOT NULL,
    UNIQUE (task, candidate),
    UNIQUE (task, sequence)
) STRICT;

CREATE TABLE hazards (
    verdict INTEGER NOT NULL REFERENCES verdicts (id) ON DELETE CASCADE,
    ordinal INTEGER NOT NULL,
    -- The hazard as the contract's JSON has it.
    body    TEXT NOT NULL CHECK (json_valid(body)),
    PRIMARY KEY (verdict, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE measurements (
    verdict      INTEGER PRIMARY KEY REFERENCES verdicts (id) ON DELETE CASCADE,
    kind         TEXT NOT NULL CHECK (kind IN ('measured', 'predicted', 'recorded')),
    p50_us       REAL NOT NULL CHECK (p50_us > 0),
    p90_us       REAL NOT NULL CHECK (p90_us > 0),
    ci_low_us    REAL NOT NULL CHECK (ci_low_us > 0),
    ci_high_us   REAL NOT NULL CHECK (ci_high_us > 0),
    protocol     TEXT NOT NULL,
    reused       INTEGER NOT NULL CHECK (reused IN (0, 1)),
    sample_count INTEGER NOT NULL,
    -- JSON array of microseconds, in the order taken.
    samples_us   TEXT NOT NULL
) STRICT;
