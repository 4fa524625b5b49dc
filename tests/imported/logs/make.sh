#!/bin/sh
# Makes the logs beside this file. It needs pgbench 15 with a PostgreSQL (PGHOST, PGUSER, PGDATABASE), and sysbench
# 1.0.20 with a MariaDB at the socket $1, whose root has no password.
set -eu
cd "$(dirname "$0")"
rm -rf pgbench sysbench
mkdir -p pgbench sysbench

logged() {
    name=$1
    shift
    mkdir "pgbench/$name"
    pgbench -n --log --log-prefix="pgbench/$name/pgbench_log" "$@" >/dev/null 2>&1
}
cat >/tmp/dyno-hot.sql <<'SQL'
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT sum(bbalance) FROM pgbench_branches;
UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = 1;
COMMIT;
SQL
pgbench -i -q >/dev/null 2>&1
logged plain -S -c 2 -t 25
logged threads -S -c 4 -j 2 -t 50
logged rate -S -c 2 -R 50 -T 2
logged sampled -S -c 2 -t 1000 --sampling-rate=0.1
logged failures -c 4 -t 30 --failures-detailed -f /tmp/dyno-hot.sql
logged late -S -c 1 -R 150 --latency-limit=0.3 -T 1
logged intervals -S -c 2 -j 2 -R 50 -T 5 --aggregate-interval=1
rm /tmp/dyno-hot.sql

bench() {
    sysbench oltp_read_only --mysql-socket="$socket" --mysql-user=root --mysql-db=dyno --tables=1 --table-size=1000 \
        --threads=2 --time=4 --rate=50 "$@"
}
socket=$1
bench prepare >/dev/null
bench run >sysbench/plain.txt
bench --histogram --report-interval=1 run >sysbench/histogram.txt
bench cleanup >/dev/null
