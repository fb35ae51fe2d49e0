-- Computed again when energy has changed.
CREATE MATERIALIZED VIEW daily_energy
COMMENT 'watt hours of each robot by day'
AS SELECT id, to_date(hour) AS day, sum(watt_hours) AS watt_hours FROM energy GROUP BY id, to_date(hour)
