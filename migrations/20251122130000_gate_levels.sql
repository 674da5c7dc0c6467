-- How hard the gate had looked at a candidate when its time was taken: `first` (one seed, one run),
-- `screening`, `timing` (three seeds, repeated), `check`, `final` (everything). Null: taken before it
-- was noted.
ALTER TABLE timing_evidence ADD COLUMN gate TEXT
    CHECK (gate IN ('first', 'screening', 'timing', 'check', 'final'));
