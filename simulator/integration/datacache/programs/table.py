"""Writes an Iceberg table events.clicks of 1,000 rows in four files, and prints where its metadata is.

usage: table.py FOLDER, the folder being the same here and in the image of the cache
"""

import sys

import pyarrow
from pyiceberg.catalog.sql import SqlCatalog

FILES, ROWS = 4, 250

folder = sys.argv[1]
catalog = SqlCatalog("table", uri="sqlite:///:memory:", warehouse=f"file://{folder}")
catalog.create_namespace("events")
table = None
for file in range(FILES):
    ids = range(file * ROWS, (file + 1) * ROWS)
    rows = pyarrow.table(
        {
            "id": pyarrow.array(ids, pyarrow.int64()),
            "x": pyarrow.array([i / (FILES * ROWS) for i in ids], pyarrow.float64()),
            "y": pyarrow.array([3 * i / (FILES * ROWS) + 1 for i in ids], pyarrow.float64()),
        }
    )
    if table is None:
        table = catalog.create_table("events.clicks", rows.schema)
    table.append(rows)
print(table.metadata_location)
