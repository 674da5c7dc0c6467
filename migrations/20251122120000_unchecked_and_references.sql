-- Two more verdicts, and the reference that results were compared with.

-- A CHECK cannot be altered, and a rebuilt table would take the rows that refer to it along: the
-- text of the schema is replaced, as https://www.sqlite.org/lang_altertable.html (section 7)
-- describes for changes that do not touch what is stored. The ALTER TABLE below raises the schema's
-- version for other connections.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema
SET sql = replace(sql, '''incorrect'', ''unsupported'')',
                  '''incorrect'', ''unsupported'', ''unchecked'', ''not_judged'')')
WHERE type = 'table' AND name = 'verdicts';
PRAGMA writable_schema = RESET;

-- What decides whether a result is right: the reference's source or oracle, arguments and
-- tolerances. NULL in rows from before; the first run that finds such a row claims it. A kernel whose
-- reference was edited is another version of it: results that were compared with the old one do not
-- rank beside new ones.
ALTER TABLE kernels ADD COLUMN reference_hash TEXT;

-- A candidate that a later run found to be wrong leaves the ordered times, as it leaves the
-- leaderboard.
CREATE TRIGGER best_times_withdrawn AFTER INSERT ON verdicts
WHEN new.verdict IN ('out_of_bounds', 'misaligned', 'barrier_divergence', 'deadlock', 'race',
                     'uninitialized', 'nondeterministic', 'implausible', 'incorrect') BEGIN
    DELETE FROM best_times WHERE candidate = new.candidate AND device =
        (SELECT r.device FROM tasks t JOIN runs r ON r.id = t.run WHERE t.id = new.task);
END;
