"""SQL statements whose parts are all obeyed; one with a part that isn't supported is refused."""

from __future__ import annotations

import pytest

from lakesplice.errors import UsageError
from lakesplice.planning.by_hand.statements import parsed_statement

MERGE = "MERGE INTO a.t USING a.s ON t.id = s.id"


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM a.t WHERE x = 1 LIMIT 5",
        "DELETE FROM a.t WHERE x = 1 ORDER BY x LIMIT 1",
        "DELETE FROM a.t USING a.s WHERE x = 1",
        "DELETE FROM a.t TABLESAMPLE (5 ROWS)",
        "DELETE FROM a.t VERSION AS OF 3",
        "DELETE FROM a.t WHERE n BETWEEN SYMMETRIC 5 AND 1",
        "WITH c AS (SELECT 1) DELETE FROM a.t",
        "UPDATE a.t SET x = 1 FROM a.s WHERE y = 2",
        "UPDATE a.t JOIN a.u SET x = 1",
        "UPDATE a.t SET x = 1 ORDER BY y LIMIT 1",
        "INSERT INTO a.t PARTITION (p = 1) VALUES (1)",
        "INSERT INTO a.t BY NAME SELECT * FROM a.s",
        "INSERT INTO a.t REPLACE WHERE x = 1 VALUES (1)",
        "INSERT INTO a.t SELECT * FROM a.s VERSION AS OF 3",
        "INSERT INTO a.t SELECT * EXCEPT (x) FROM a.s",
        "INSERT INTO a.t SELECT DISTINCT * FROM a.s",
        "INSERT INTO a.t VALUES (1) ON CONFLICT DO NOTHING",
        "MERGE INTO a.t USING a.s VERSION AS OF 2 ON t.id = s.id WHEN MATCHED THEN DELETE",
        f"{MERGE} WHEN MATCHED THEN UPDATE SET * EXCEPT (x)",
        f"{MERGE} WHEN MATCHED THEN UPDATE SET x = 1 WHERE s.y = 1",
    ],
)
def test_a_statement_with_a_part_that_is_not_supported_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"isn't supported|takes UPDATE, INSERT or DELETE"):
        parsed_statement(text)
