#!/bin/sh
# Makes what docker-compose.yml takes for secrets, below ./secrets: random passwords, a certificate for localhost, and the settings file with
# one API key, which is printed once. What is there already stays.
set -eu
umask 077
mkdir -p secrets
cd secrets

make() { # FILE COMMAND…: the command's output becomes the file, whole or not at all
  file=$1
  shift
  [ -e "$file" ] && return
  "$@" >"$file.new"
  mv "$file.new" "$file"
}

s3_credentials() {
  printf '[default]\naws_access_key_id = mediakeep\naws_secret_access_key = %s\n' "$(openssl rand -hex 24)"
}

s3_server() {
  secret=$(sed -n 's/^aws_secret_access_key = //p' s3_credentials)
  printf '{"identities": [{"name": "mediakeep", "credentials": [{"accessKey": "mediakeep", "secretKey": "%s"}],' "$secret"
  printf ' "actions": ["Admin", "Read", "Write", "List"]}]}\n'
}

settings() {
  secret=$(openssl rand -hex 32)
  echo "API key of the tenant acme, told once: mk_acme-host_$secret" >&2
  printf '[index]\nurl = "postgres://mediakeep:%s@postgres/mediakeep"\n\n' "$(cat postgres_password)"
  printf '[[access.api_keys]]\nid = "acme-host"\ntenant = "acme"\n'
  printf 'scopes = ["assets:write", "assets:read", "assets:mint", "runs:write"]\n'
  printf 'secret_sha256 = "%s"\n' "$(printf %s "$secret" | openssl dgst -sha256 -r | cut -d' ' -f1)"
}

make postgres_password openssl rand -hex 24
make s3_credentials s3_credentials
make s3_server.json s3_server
make mediakeep.toml settings
if [ ! -e tls_key ]; then
  openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
    -keyout tls_key -out tls_certificate 2>/dev/null
fi
# The folder is closed to others; the files in it are read by the containers' own users.
chmod 644 ./*
