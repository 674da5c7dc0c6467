-- How often a daemon took this run up and crashed before the run had begun its work. A run that takes the
-- daemon down with it would otherwise do so again at every start.
ALTER TABLE queue ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
