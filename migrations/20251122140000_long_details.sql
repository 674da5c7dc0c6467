-- A compiler writes kilobytes: of a long detail `verdicts.detail` has the beginning, and this all of it,
-- compressed (zlib). Details of earlier builds stand in `verdicts` whole.
CREATE TABLE long_details (
    verdict INTEGER PRIMARY KEY REFERENCES verdicts (id) ON DELETE CASCADE,
    body    BLOB NOT NULL
) STRICT;
