-- Creates the database roles and the database. Run by an administrator. Idempotent:
--
--   ASSENT_OWNER_PASSWORD=... ASSENT_APP_PASSWORD=... ASSENT_SYSTEM_PASSWORD=... psql -X -d postgres -f deploy/roles.sql
--
-- Passwords come from the environment, so that no process list shows them. A password without its variable stays as it is (set it
-- later: ALTER ROLE assent_app PASSWORD '...'). Another name for the database: -v database=NAME. psql 15 or newer.
-- Migrations run as assent_owner; they create the tables and grant the other roles' rights. assent_definer cannot log in: it owns
-- the few functions by which assent_app reads and writes rows of all workspaces.

\set ON_ERROR_STOP on
\if :{?database}
\else
  \set database assent
\endif

SELECT format('CREATE ROLE %I LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE', role)
FROM unnest(ARRAY['assent_owner', 'assent_app', 'assent_system']) AS role
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role)
\gexec

SELECT 'CREATE ROLE assent_definer NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE'
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'assent_definer')
\gexec

-- Only for roles with other settings: an administrator without superuser rights may not even repeat these settings.
SELECT format('ALTER ROLE %I LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE', rolname)
FROM pg_roles
WHERE rolname IN ('assent_owner', 'assent_app', 'assent_system')
  AND (rolsuper OR rolbypassrls OR rolcreatedb OR rolcreaterole OR NOT rolcanlogin)
\gexec

-- Migrations change the owner of functions to assent_definer, which only its members may do.
SELECT 'GRANT assent_definer TO assent_owner' WHERE NOT pg_has_role('assent_owner', 'assent_definer', 'MEMBER')
\gexec

-- The running roles must not be members of assent_owner, because they would own its tables as well, nor of assent_definer.
SELECT format('REVOKE %I FROM %I', strong, rolname)
FROM pg_roles, unnest(ARRAY['assent_owner', 'assent_definer']) AS strong
WHERE rolname IN ('assent_app', 'assent_system') AND pg_has_role(rolname, strong, 'MEMBER')
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

-- An administrator without superuser rights must be a member of the role for which he creates a database.
SELECT 'GRANT assent_owner TO CURRENT_USER' WHERE NOT pg_has_role(CURRENT_USER, 'assent_owner', 'MEMBER')
\gexec

SELECT format('CREATE DATABASE %I OWNER assent_owner ENCODING %L TEMPLATE template0', :'database', 'UTF8')
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'database')
\gexec

SELECT format('ALTER DATABASE %I OWNER TO assent_owner', datname)
FROM pg_database
WHERE datname = :'database' AND pg_get_userbyid(datdba) <> 'assent_owner'
\gexec
