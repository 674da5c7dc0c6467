-- Consequences of verdicts, as `Verdict::facts` in `crates/core/src/record/verdict.rs` has them:
-- opening a database compares both. A later verdict is an INSERT in another migration.
CREATE TABLE verdict_facts (
    name      TEXT PRIMARY KEY,
    class     TEXT NOT NULL,
    knowledge INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO verdict_facts (name, class, knowledge) VALUES
    ('ok', 'passed', 1),
    ('rejected', 'not_run', 0),
    ('compile_failed', 'not_run', 1),
    ('launch_failed', 'not_run', 1),
    ('out_of_bounds', 'wrong', 1),
    ('misaligned', 'wrong', 1),
    ('barrier_divergence', 'wrong', 1),
    ('deadlock', 'wrong', 1),
    ('race', 'wrong', 1),
    ('uninitialized', 'wrong', 1),
    ('timeout', 'limit', 1),
    ('crashed', 'limit', 1),
    ('out_of_memory', 'limit', 1),
    ('nondeterministic', 'wrong', 1),
    ('implausible', 'wrong', 1),
    ('incorrect', 'wrong', 1),
    ('unsupported', 'not_run', 0),
    ('unchecked', 'limit', 0),
    ('not_judged', 'not_run', 0);

-- A reference replaces the list of names in the CHECK of `verdicts`. The text of the schema is
-- replaced for the reason given in `20251122120000_unchecked_and_references.sql`: a rebuilt table
-- would take the rows that refer to it along. DROP VIEW raises the schema's version.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = substr(sql, 1, instr(sql, 'CHECK (verdict IN (') - 1)
          || 'REFERENCES verdict_facts (name)'
          || substr(sql, instr(sql, '''not_judged''))') + length('''not_judged''))'))
WHERE type = 'table' AND name = 'verdicts' AND instr(sql, 'CHECK (verdict IN (') > 0;
PRAGMA writable_schema = RESET;

-- A look-up of one verdict, not a list: both are evaluated for each stored result.
DROP VIEW withdrawn;
CREATE VIEW withdrawn AS
SELECT v.id AS verdict FROM verdicts v JOIN tasks t ON t.id = v.task JOIN runs r ON r.id = t.run
WHERE v.verdict = 'ok' AND EXISTS (
    SELECT 1 FROM verdicts w JOIN tasks u ON u.id = w.task JOIN runs s ON s.id = u.run
    WHERE w.candidate = v.candidate AND s.device = r.device
      AND (SELECT f.class FROM verdict_facts f WHERE f.name = w.verdict) = 'wrong'
      AND (w.judged_at, w.id) > (v.judged_at, v.id));

DROP TRIGGER best_times_withdrawn;
CREATE TRIGGER best_times_withdrawn AFTER INSERT ON verdicts
WHEN (SELECT class FROM verdict_facts WHERE name = new.verdict) = 'wrong' BEGIN
    DELETE FROM best_times WHERE candidate = new.candidate AND device =
        (SELECT r.device FROM tasks t JOIN runs r ON r.id = t.run WHERE t.id = new.task);
    INSERT INTO best_times (problem, device, kind, candidate, verdict, class, p50_us)
    SELECT problem, device, kind, candidate, verdict, class, p50_us FROM (
        SELECT *, row_number() OVER (PARTITION BY kind ORDER BY class, stage,
                                     iif(stage = 'final', -verdict, 0), p50_us, verdict) AS place
        FROM valid_times
        WHERE problem = (SELECT problem FROM candidates WHERE id = new.candidate)
          AND device = (SELECT r.device FROM tasks t JOIN runs r ON r.id = t.run WHERE t.id = new.task)
          AND candidate = new.candidate)
    WHERE place = 1;
END;
