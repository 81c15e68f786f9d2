#!/bin/sh
# Makes Temporal's two databases and updates their schemas. It changes nothing that is up to date. It runs once in
# temporalio/admin-tools, before the server starts. The tool reads the database's address and password from the
# environment: SQL_PLUGIN, SQL_HOST, SQL_PORT, SQL_USER, SQL_PASSWORD.
set -eu

schemas=${SCHEMA_DIR:-/etc/temporal/schema/postgresql/v12}

# $1 is the database, $2 the folder of its schema.
bring_up() {
    temporal-sql-tool --database "$1" create
    temporal-sql-tool --database "$1" setup-schema --version 0.0
    temporal-sql-tool --database "$1" update-schema --schema-dir "$schemas/$2/versioned"
}

bring_up temporal temporal
bring_up temporal_visibility visibility
echo "the schemas are up to date"
