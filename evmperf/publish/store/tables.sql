-- What a question may name, of the rows that count (`records`).

CREATE VIEW runs AS
SELECT lab, board, run, make_timestamp(began_ns // 1000) AS began, make_timestamp(ended_ns // 1000) AS ended,
    kind, place, release, os, profile, exit_status, outcome, facts::JSON AS facts
FROM records WHERE record = 'run';

CREATE VIEW results AS
SELECT lab, board, run, make_timestamp(began_ns // 1000) AS began, benchmark, "case", driver, number, profile,
    version, status, make_timestamp(started_ns // 1000) AS started, duration_s, tool_s, rest->'params' AS params,
    rest->'tools' AS tools, rest->'conditions' AS conditions, rest->'failures' AS failures
FROM records WHERE record = 'result';

CREATE VIEW samples AS
SELECT lab, board, run, make_timestamp(began_ns // 1000) AS began, benchmark, "case", driver, number, profile,
    s.metric, s.value, s.unit, s.repetition, make_timestamp_ns(s.time_ns) AS time, s.error
FROM (SELECT *, unnest(samples) AS s FROM records WHERE record = 'result');

CREATE VIEW boots AS
SELECT lab, board, run, make_timestamp(began_ns // 1000) AS began, number, rest->>'goal' AS goal,
    rest->>'kernel_arguments' AS kernel_arguments, make_timestamp(started_ns // 1000) AS started, duration_s,
    rest->'failure'->>'kind' AS failure, rest->'failure'->>'message' AS message
FROM records WHERE record = 'boot';

CREATE VIEW marks AS
SELECT lab, board, run, make_timestamp(began_ns // 1000) AS began, number, m.phase,
    (m.mono_ns - list_filter(marks, lambda x: x.phase = 'power_on')[1].mono_ns) / 1e9 AS since_power_on_s,
    m.error_s, m.text, make_timestamp_ns(m.wall_ns) AS time
FROM (SELECT *, unnest(marks) AS m FROM records WHERE record = 'boot');

CREATE VIEW facts AS
SELECT lab, board, run, make_timestamp(began_ns // 1000) AS began, f.key AS name, f.value->>'$' AS value
FROM (SELECT * FROM records WHERE record = 'run') AS r, json_each(r.facts) AS f;

CREATE VIEW verdicts AS
SELECT lab, board, run, make_timestamp(began_ns // 1000) AS began, benchmark, "case", driver,
    rest->>'metric' AS metric, rest->>'verdict' AS verdict, (rest->>'change')::DOUBLE AS change,
    rest->>'baseline' AS baseline, rest->>'reason' AS reason
FROM records WHERE record = 'verdict' QUALIFY row_number() OVER
    (PARTITION BY lab, board, run, benchmark, "case", rest->>'metric' ORDER BY number DESC) = 1;

CREATE VIEW published AS
SELECT lab, board, run, make_timestamp(began_ns // 1000) AS began, benchmark, "case", driver,
    p.metric, p.mean, p.low, p.high, p.unit, p.text
FROM (SELECT *, unnest(published) AS p FROM records WHERE record = 'result');
