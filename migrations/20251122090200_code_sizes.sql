-- Sizes of the intermediate and the machine code; null for candidates compiled before.
ALTER TABLE compilations ADD COLUMN ptx_bytes INTEGER;
ALTER TABLE compilations ADD COLUMN sass_bytes INTEGER;
