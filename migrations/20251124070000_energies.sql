-- Energy of a launch sequence, millijoules: median of the windows, its 95 % interval, and a JSON array
-- of the windows. Null where it was not asked for, or the device does not count its energy.
ALTER TABLE timing_evidence ADD COLUMN energy_mj REAL;
ALTER TABLE timing_evidence ADD COLUMN energy_low_mj REAL;
ALTER TABLE timing_evidence ADD COLUMN energy_high_mj REAL;
ALTER TABLE timing_evidence ADD COLUMN energies_mj TEXT;
