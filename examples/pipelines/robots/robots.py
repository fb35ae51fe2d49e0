"""What robots are, kept up to date from changes, whatever order they come in.

`robot_changes` has a row for each change: the robot, a number that counts its changes, what it is
now, and whether it was taken out of service.
"""

from pyspark import pipelines as dp
from pyspark.sql import functions as f

dp.create_streaming_table("robots", comment="robots in service, as they are now")
dp.create_auto_cdc_flow(
    target="robots",
    source="robot_changes",
    keys=["id"],
    sequence_by="change",
    apply_as_deletes=f.expr("retired"),
    column_list=["id", "site", "firmware"],
    stored_as_scd_type=1,
)
