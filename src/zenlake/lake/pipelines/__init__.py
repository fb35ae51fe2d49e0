"""Users' pipelines, written with `pyspark.pipelines`, run on the lake's Spark."""
