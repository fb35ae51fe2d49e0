"""The functions that a question of a stranger may call.

An allow-list: what is not here is refused, what Spark adds later too. Nothing in it reads a file,
calls Java or Python, tells of the machine or of other sessions, or waits. Functions that make
large values from small ones (`SIZED`) are called with small numbers that stand in the question.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ALLOWED",
    "INFERRED",
    "MANIFOLD",
    "MOST_SIZE",
    "PATTERNS",
    "SIZED",
    "TABLE_FUNCTIONS",
    "TYPES",
]

MOST_SIZE: Final = 10_000
"""The largest number that a function of `SIZED` may be given."""

SIZED: Final = {
    "array_insert": (1,),
    "array_repeat": (1,),
    "bround": (1,),
    "ceil": (1,),
    "ceiling": (1,),
    "floor": (1,),
    "format_number": (1,),
    "histogram_numeric": (1,),
    "lpad": (1,),
    "repeat": (1,),
    "round": (1,),
    "rpad": (1,),
    "sequence": (0, 1, 2),
    "space": (0,),
    "stack": (0,),
}
"""Which of their arguments say how large a value becomes."""
MANIFOLD: Final = frozenset({"array_repeat", "repeat", "sequence"})
"""Those of them whose sizes multiply where one is given to another."""

PATTERNS: Final = {
    "parse_url": (2,),
    "regexp": (1,),
    "regexp_count": (1,),
    "regexp_extract": (1,),
    "regexp_extract_all": (1,),
    "regexp_instr": (1,),
    "regexp_like": (1,),
    "regexp_replace": (1,),
    "regexp_substr": (1,),
    "rlike": (1,),
    "split": (1,),
    "str_to_map": (1, 2),
    "try_parse_url": (2,),
}
"""Which arguments are regular expressions: Java reads them, and no clock."""

TYPES: Final = {"from_csv": 1, "from_json": 1, "try_variant_get": 2, "variant_get": 2}
"""Which argument names a type: Spark's parser reads it, and no clock."""
INFERRED: Final = frozenset({"schema_of_csv", "schema_of_json"})
"""Functions that make the name of a type from an example."""

TABLE_FUNCTIONS: Final = frozenset(
    {
        "explode",
        "explode_outer",
        "inline",
        "inline_outer",
        "posexplode",
        "posexplode_outer",
        "stack",
    }
)
"""Functions that make rows, of values that are there already."""

_LOGIC: Final = """
    ! and or not between in isnull isnotnull isnan nullif nullifzero zeroifnull nvl nvl2 coalesce
    if ifnull case when decode greatest least equal_null assert_null
"""
_NUMBERS: Final = """
    + - * / % div mod pmod abs acos acosh asin asinh atan atan2 atanh bin bround cbrt ceil ceiling
    conv cos cosh cot csc degrees e exp expm1 factorial floor hex hypot ln log log10 log1p log2
    negative pi positive pow power radians rint round sec sign signum sin sinh sqrt tan tanh
    try_add try_divide try_mod try_multiply try_subtract try_to_number to_number unhex width_bucket
    bit_count bit_get getbit shiftleft shiftright shiftrightunsigned & | ^ ~ << >> >>> uniform
"""
_TEXT: Final = """
    || ascii base64 bit_length btrim char char_length character_length chr concat concat_ws
    contains crc32 decode elt encode endswith find_in_set format_number format_string initcap
    instr isvalidutf8 lcase left len length levenshtein like ilike locate lower ltrim
    luhn_check mask md5 octet_length overlay position printf regexp regexp_count regexp_extract
    regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr replace reverse right
    rlike rtrim sentences sha sha1 sha2 soundex split split_part startswith string substr substring
    substring_index to_binary to_char to_varchar translate trim try_to_binary try_validate_utf8
    make_valid_utf8 validate_utf8 ucase unbase64 upper url_decode url_encode try_url_decode
    parse_url try_parse_url xxhash64 hash
"""
_TIMES: Final = """
    add_months convert_timezone curdate current_date current_timestamp current_timezone
    current_time date date_add date_diff date_format date_from_unix_date date_part date_sub
    date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear extract
    from_unixtime from_utc_timestamp hour last_day localtimestamp make_date make_dt_interval
    make_interval make_time make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval
    minute month monthname months_between next_day now quarter second session_window
    timediff timestampadd timestampdiff timestamp timestamp_micros timestamp_millis
    timestamp_seconds to_date to_time to_timestamp to_timestamp_ltz to_timestamp_ntz
    to_unix_timestamp to_utc_timestamp trunc try_make_interval try_make_timestamp try_to_date
    try_to_time try_to_timestamp unix_date unix_micros unix_millis unix_seconds unix_timestamp
    weekday weekofyear window window_time year
"""
_COLLECTIONS: Final = """
    aggregate array array_append array_compact array_contains array_distinct array_except
    array_insert array_intersect array_join array_max array_min array_position array_prepend
    array_remove array_size array_sort array_union arrays_overlap arrays_zip cardinality
    element_at exists filter flatten forall get map map_concat map_contains_key map_entries
    map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with named_struct
    reduce shuffle size slice sort_array str_to_map struct transform transform_keys
    transform_values try_element_at zip_with
"""
_DOCUMENTS: Final = """
    from_json get_json_object json_array_length json_object_keys json_tuple schema_of_json to_json
    parse_json try_parse_json is_variant_null try_variant_get variant_get schema_of_variant
    from_csv to_csv typeof
"""
_AGGREGATES: Final = """
    any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor
    bool_and bool_or collect_list collect_set corr count count_if count_min_sketch covar_pop
    covar_samp cube every first first_value grouping grouping_id histogram_numeric
    kurtosis last last_value listagg max max_by mean median min min_by mode percentile
    percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy rollup skewness some std stddev
    stddev_pop stddev_samp string_agg sum try_avg try_sum var_pop var_samp variance
    cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number
"""
_CASTS: Final = """
    bigint binary boolean cast decimal double float int smallint tinyint
    = == <=> != <> < <= > >=
"""

ALLOWED: Final = (
    frozenset(
        " ".join(
            (_LOGIC, _NUMBERS, _TEXT, _TIMES, _COLLECTIONS, _DOCUMENTS, _AGGREGATES, _CASTS)
        ).split()
    )
    | frozenset(SIZED)
    | TABLE_FUNCTIONS
)
"""By name, in lower case."""
