-- Creates the database roles and the database. Run by an administrator. Idempotent:
--
--   ASSENT_OWNER_PASSWORD=... ASSENT_APP_PASSWORD=... ASSENT_SYSTEM_PASSWORD=... psql -X -d postgres -f deploy/roles.sql
--
-- ASSENT_SCALER_PASSWORD lets assent_scaler log in, which reads how long the queues are and nothing else.
--
-- Passwords come from the environment, so that no process list shows them. Without its variable, a role keeps the password that it
-- has; set the password later with ALTER ROLE assent_app PASSWORD '...'. The option -v database=NAME gives the database another
-- name. The script needs psql 15 or newer.
--
-- Migrations run as assent_owner. They create the tables, and grant the rights of the other roles. assent_definer cannot log in. This
-- role owns the few functions by which assent_app reads and writes rows of all workspaces.

\set ON_ERROR_STOP on
\if :{?database}
\else
  \set database assent
\endif

SELECT format('CREATE ROLE %I LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE', role)
FROM unnest(ARRAY['assent_owner', 'assent_app', 'assent_system', 'assent_scaler']) AS role
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role)
\gexec

SELECT 'CREATE ROLE assent_definer NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE'
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'assent_definer')
\gexec

-- Changes only roles whose attributes differ: ALTER ROLE with NOSUPERUSER needs a superuser, even if the role has this attribute.
SELECT format('ALTER ROLE %I LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE', rolname)
FROM pg_roles
WHERE rolname IN ('assent_owner', 'assent_app', 'assent_system', 'assent_scaler')
  AND (rolsuper OR rolbypassrls OR rolcreatedb OR rolcreaterole OR NOT rolcanlogin)
\gexec

-- Migrations make assent_definer the owner of functions. Only a member of assent_definer may do that.
SELECT 'GRANT assent_definer TO assent_owner' WHERE NOT pg_has_role('assent_owner', 'assent_definer', 'MEMBER')
\gexec

-- The running roles must not be members of assent_owner or assent_definer: a member has all rights of the role. Row-level policies do
-- not bind the owner of a table.
SELECT format('REVOKE %I FROM %I', strong, rolname)
FROM pg_roles, unnest(ARRAY['assent_owner', 'assent_definer']) AS strong
WHERE rolname IN ('assent_app', 'assent_system', 'assent_scaler') AND pg_has_role(rolname, strong, 'MEMBER')
\gexec

-- Time limits, for connections through a pooler, which passes on no setting of a connection (docs/deployment.md).
SELECT format('ALTER ROLE %I SET %I = %L', rolname, setting, value)
FROM pg_roles, (VALUES ('statement_timeout', '5s'), ('lock_timeout', '2s'), ('idle_in_transaction_session_timeout', '10s'))
  AS limits (setting, value)
WHERE rolname IN ('assent_app', 'assent_system', 'assent_scaler')
  AND NOT EXISTS (
    SELECT FROM pg_db_role_setting, unnest(setconfig) AS line
    WHERE setrole = pg_roles.oid AND setdatabase = 0 AND line LIKE setting || '=%'
  )
\gexec

\getenv owner_password ASSENT_OWNER_PASSWORD
\if :{?owner_password}
  ALTER ROLE assent_owner PASSWORD :'owner_password';
\endif
\getenv app_password ASSENT_APP_PASSWORD
\if :{?app_password}
  ALTER ROLE assent_app PASSWORD :'app_password';
\endif
\getenv system_password ASSENT_SYSTEM_PASSWORD
\if :{?system_password}
  ALTER ROLE assent_system PASSWORD :'system_password';
\endif
\getenv scaler_password ASSENT_SCALER_PASSWORD
\if :{?scaler_password}
  ALTER ROLE assent_scaler PASSWORD :'scaler_password';
\endif

-- An administrator who is not a superuser must be a member of the role that will own the database.
SELECT 'GRANT assent_owner TO CURRENT_USER' WHERE NOT pg_has_role(CURRENT_USER, 'assent_owner', 'MEMBER')
\gexec

SELECT format('CREATE DATABASE %I OWNER assent_owner ENCODING %L TEMPLATE template0', :'database', 'UTF8')
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'database')
\gexec

SELECT format('ALTER DATABASE %I OWNER TO assent_owner', datname)
FROM pg_database
WHERE datname = :'database' AND pg_get_userbyid(datdba) <> 'assent_owner'
\gexec

-- The migration grants this, too. In an installation that was migrated before it had the role, only this does.
\connect :database
SELECT 'GRANT EXECUTE ON FUNCTION public.assent_read_queues(integer) TO assent_scaler'
WHERE to_regprocedure('public.assent_read_queues(integer)') IS NOT NULL
\gexec
