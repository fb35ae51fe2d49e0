"""Trips cut from poses: a trip ends when its robot says nothing for a minute.

The state of a robot is the trip that it is on. A timer ends the trip when the time of the stream
has passed a minute without a pose, so that the last trip of a robot ends as well.
"""

import math
from collections.abc import Iterator
from typing import Any

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

spark = SparkSession.active()

PAUSE_MICROS = 60_000_000
TRIP = "first bigint, last bigint, x double, y double, metres double, poses bigint"


class TripCutter(StatefulProcessor):
    """Keeps the trip that each robot is on, with times in microseconds since 1970."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state of a robot."""
        self.handle = handle
        self.trip = handle.getValueState("trip", TRIP)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """Go on with the trip of a robot, and give the trips that its poses end."""
        trip = self.trip.get() if self.trip.exists() else None
        for pose in sorted(rows, key=lambda row: row.micros):
            if trip is not None and pose.micros - trip[1] > PAUSE_MICROS:
                yield self.ended(key, trip)
                trip = None
            if trip is None:
                trip = (pose.micros, pose.micros, pose.x, pose.y, 0.0, 1)
                continue
            first, last, x, y, metres, poses = trip
            metres += math.hypot(pose.x - x, pose.y - y)
            trip = (first, max(last, pose.micros), pose.x, pose.y, metres, poses + 1)
        for timer in list(self.handle.listTimers()):
            self.handle.deleteTimer(timer)
        if trip is not None:
            self.trip.update(trip)
            self.handle.registerTimer((trip[1] + PAUSE_MICROS) // 1000 + 1)

    def handleExpiredTimer(
        self, key: Any, timerValues: Any, expiredTimerInfo: Any
    ) -> Iterator[Any]:
        """Give the trip of a robot that has been silent for a minute."""
        if self.trip.exists():
            yield self.ended(key, self.trip.get())
            self.trip.clear()

    def ended(self, key: Any, trip: Any) -> Row:
        """Return a trip as a row of the table."""
        first, last, _, _, metres, poses = trip
        return Row(id=key[0], first=first, last=last, metres=metres, poses=poses)

    def close(self) -> None:
        """Hold nothing open."""


@dp.table(comment="trips of robots, each when it is over")
def trips() -> DataFrame:
    """`pose` has a row for each place at which a robot was."""
    cut = (
        spark.readStream.table("pose")
        .withWatermark("time", "10 seconds")
        .withColumn("micros", f.unix_micros("time"))
        .groupBy("id")
        .transformWithState(
            TripCutter(),
            "id string, first bigint, last bigint, metres double, poses bigint",
            "append",
            "EventTime",
        )
    )
    return cut.select(
        "id",
        f.timestamp_micros("first").alias("begin"),
        f.timestamp_micros("last").alias("end"),
        "metres",
        "poses",
    )
