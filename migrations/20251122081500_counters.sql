-- What the virtual GPU counted while it judged a candidate (bank conflicts, sectors, occupancy, the
-- limit): what explains a predicted time. One row a verdict, where there is something to say.
CREATE TABLE counters (
    verdict INTEGER PRIMARY KEY REFERENCES verdicts (id) ON DELETE CASCADE,
    body    TEXT NOT NULL CHECK (json_valid(body))
) STRICT;
