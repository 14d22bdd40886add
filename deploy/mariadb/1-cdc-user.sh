#!/usr/bin/env bash
# The user that the connector reads the binlog as, with what it needs and no more.
set -euo pipefail
mariadb --user=root --password="${MARIADB_ROOT_PASSWORD}" <<SQL
CREATE USER 'cdc'@'%' IDENTIFIED BY '${CDC_PASSWORD}';
GRANT SELECT, RELOAD, SHOW DATABASES, LOCK TABLES,
      REPLICATION SLAVE, REPLICATION CLIENT, BINLOG MONITOR ON *.* TO 'cdc'@'%';
SQL
