-- The log is only ever added to. TRUNCATE stays possible: it needs the table's owner, and test runs flush with it.
CREATE OR REPLACE FUNCTION trace_events_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'trace_events is append-only: % of run % seq % refused', TG_OP, OLD.run_id, OLD.seq
    USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER trace_events_append_only BEFORE UPDATE OR DELETE ON trace_events
  FOR EACH ROW EXECUTE FUNCTION trace_events_refuse_change();
