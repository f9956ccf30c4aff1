# A PostgreSQL server for tests. It says its folder when it is ready, and is gone with all its data as soon as whoever started it
# closes this script's standard input, which also happens when they are killed.
#
# Arguments: the folder of the server's programs, a port that was free a moment ago, whether it waits for the disk (on or off).
set -eu
programs=$1 port=$2 fsync=$3
cd /
# Whoever waits for the folder's name may be gone by then; the server has to be taken down all the same.
trap '' PIPE
folder=$(mktemp -d "${TMPDIR:-/tmp}/mediakeep-postgres.XXXXXX")
as=
if [ "$(id -u)" = 0 ]; then
  # The server refuses to be root.
  chown postgres "$folder"
  as='setpriv --reuid=postgres --regid=postgres --init-groups'
fi

end() {
  $as "$programs/pg_ctl" -D "$folder/data" -m immediate stop >/dev/null 2>&1 || :
  rm -rf "$folder"
}
trap end EXIT

# A collation that does not order by bytes, like that of a server which was installed in somebody's language.
$as "$programs/initdb" -D "$folder/data" -A trust -U postgres -E UTF8 --no-sync \
  --locale=C.UTF-8 --locale-provider=icu --icu-locale=en-US >"$folder/made" 2>&1 || { cat "$folder/made" >&2; exit 1; }

# No test pulls this server's plug: what is durable is asked of the client, and the disk need not be waited for. A benchmark waits.
cat >>"$folder/data/postgresql.conf" <<SETTINGS
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = ''
max_connections = 300
fsync = $fsync
full_page_writes = $fsync
autovacuum = off
SETTINGS
# Waits until this very server accepts connections: another's on the same port does not count.
$as "$programs/pg_ctl" -D "$folder/data" -l "$folder/log" -w -t 60 start >/dev/null 2>&1 || { cat "$folder/log" >&2; exit 1; }

echo "$folder"
cat >/dev/null
