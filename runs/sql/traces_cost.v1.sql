-- Costs reach the run's row as events land: one update per statement. `data.usage.pays` says which column an event
-- feeds; a usage without `cost_usd` is a call of unknown price, which is counted and never taken for zero.
CREATE OR REPLACE FUNCTION trace_events_add_cost() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE traces t SET
    cost_driver = t.cost_driver + c.driver, cost_model = t.cost_model + c.model, cost_sandbox = t.cost_sandbox + c.sandbox,
    cost_narration = t.cost_narration + c.narration, cost_judge = t.cost_judge + c.judge,
    cost_proxy_linger = t.cost_proxy_linger + c.linger, unknown_cost_calls = t.unknown_cost_calls + c.unknown,
    tokens_in = t.tokens_in + c.tokens_in, tokens_out = t.tokens_out + c.tokens_out, requests = t.requests + c.requests
  FROM (
    SELECT run_id,
      coalesce(sum(usd) FILTER (WHERE pays = 'driver'), 0) AS driver,
      coalesce(sum(usd) FILTER (WHERE pays = 'model'), 0) AS model,
      coalesce(sum(usd) FILTER (WHERE pays = 'sandbox'), 0) AS sandbox,
      coalesce(sum(usd) FILTER (WHERE pays = 'narration'), 0) AS narration,
      coalesce(sum(usd) FILTER (WHERE pays = 'judge'), 0) AS judge,
      coalesce(sum(usd) FILTER (WHERE pays = 'proxy_linger'), 0) AS linger,
      coalesce(sum(unknown), 0) AS unknown,
      coalesce(sum(tokens_in), 0) AS tokens_in, coalesce(sum(tokens_out), 0) AS tokens_out,
      coalesce(sum(requests), 0) AS requests
    FROM (
      SELECT run_id, data->'usage'->>'pays' AS pays, (data->'usage'->>'cost_usd')::numeric AS usd,
        (data->'usage'->>'unknown_cost_calls')::bigint AS unknown,
        (data->'usage'->>'input')::bigint AS tokens_in, (data->'usage'->>'output')::bigint AS tokens_out,
        (data->'usage'->>'requests')::bigint AS requests
      FROM added WHERE jsonb_typeof(data->'usage') = 'object'
    ) u GROUP BY run_id
  ) c WHERE t.id = c.run_id;
  RETURN NULL;
END $$;
CREATE TRIGGER trace_events_cost AFTER INSERT ON trace_events
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION trace_events_add_cost();
