-- The figures of a board's runs: a row for the metrics of a case that were measured alike.
SELECT benchmark, "case", driver, profile, version, rest, names,
list(run) AS runs, list(number) AS places, flatten(list(numbers)) AS numbers
FROM (SELECT *, list_transform(samples, lambda s: [s.metric, s.unit]) AS names,
    list_transform(samples, lambda s: CASE WHEN abs(s.value) <= 1e18 THEN s.value END) AS numbers
    FROM {rows} WHERE record = 'result' AND samples IS NOT NULL AND began_ns >= $since)
GROUP BY ALL
