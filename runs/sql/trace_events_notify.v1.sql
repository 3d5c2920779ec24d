-- One wake-up per run and statement, however many rows a batch brings.
CREATE OR REPLACE FUNCTION trace_events_wake() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  FOR r IN SELECT run_id, max(seq) AS seq FROM added GROUP BY run_id LOOP
    PERFORM pg_notify('trace_events', r.run_id || ':' || r.seq);
  END LOOP;
  RETURN NULL;
END $$;
CREATE TRIGGER trace_events_notify AFTER INSERT ON trace_events
  REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION trace_events_wake();
