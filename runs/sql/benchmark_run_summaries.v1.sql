-- The registry's row of a finished run. It belongs to `registry`, which knows no run: this trigger is the one arrow up.
CREATE OR REPLACE FUNCTION traces_summarise() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.status = 'running' THEN
    DELETE FROM benchmark_run_summaries WHERE run_id = NEW.id;
    RETURN NULL;
  END IF;
  INSERT INTO benchmark_run_summaries AS s (run_id, account_id, benchmark_id, subset_id, impl_id, model, model_key, status,
    visibility, comparability_key, accuracy, selected, passed, failed, errored, cost_model, finished_at)
  VALUES (NEW.id, NEW.account_id, NEW.benchmark_id, NEW.subset_id, NEW.impl_id, NEW.model,
    left(coalesce(NEW.model->>'source', '') || ':' || coalesce(NEW.model->>'identifier', ''), 300), NEW.status,
    NEW.visibility, NEW.comparability_key,
    NEW.tasks_passed::float8 / nullif(NEW.tasks_passed + NEW.tasks_failed, 0), coalesce(NEW.tasks_selected, 0),
    NEW.tasks_passed, NEW.tasks_failed, NEW.tasks_errored,
    CASE WHEN NEW.unknown_cost_calls = 0 THEN NEW.cost_model END, coalesce(NEW.finished_at, now()))
  ON CONFLICT (run_id) DO UPDATE SET benchmark_id = EXCLUDED.benchmark_id, subset_id = EXCLUDED.subset_id,
    impl_id = EXCLUDED.impl_id, status = EXCLUDED.status, visibility = EXCLUDED.visibility,
    comparability_key = EXCLUDED.comparability_key, accuracy = EXCLUDED.accuracy, selected = EXCLUDED.selected,
    passed = EXCLUDED.passed, failed = EXCLUDED.failed, errored = EXCLUDED.errored, cost_model = EXCLUDED.cost_model,
    finished_at = EXCLUDED.finished_at;
  RETURN NULL;
END $$;
CREATE TRIGGER traces_summary AFTER UPDATE OF status, visibility, tasks_passed, cost_model ON traces
  FOR EACH ROW WHEN (NEW.status <> 'running' OR OLD.status <> 'running') EXECUTE FUNCTION traces_summarise();
