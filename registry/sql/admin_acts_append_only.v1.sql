-- What an admin did stays told: an act is never changed and never removed.
CREATE OR REPLACE FUNCTION admin_acts_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'admin_acts is append-only: % of act % refused', TG_OP, OLD.id USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER admin_acts_append_only BEFORE UPDATE OR DELETE ON admin_acts
  FOR EACH ROW EXECUTE FUNCTION admin_acts_refuse_change();
