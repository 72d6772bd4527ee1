#!/usr/bin/env bash
# Runs Cloudflare's own client, wrangler, against the fake to check that the fake behaves like Cloudflare. Needs node 20,
# npm and, for the first run, network access. Not part of the tests, because it downloads 100 MB of packages.
set -euo pipefail
cd "$(dirname "$0")/../../.."

cache=${WRANGLER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/core-cloudflare-fake}
if [ ! -x "$cache/node_modules/.bin/wrangler" ]; then
    mkdir -p "$cache"
    npm install --prefix "$cache" --silent --no-audit --no-fund wrangler@4.86.0
fi

cargo build --quiet -p core-cloudflare-fake
work=$(mktemp -d)
target/debug/core-cloudflare-fake 0 >"$work/url" &
fake=$!
trap 'kill $fake; rm -rf "$work"' EXIT
for _ in $(seq 100); do [ -s "$work/url" ] && break; sleep 0.1; done

export CLOUDFLARE_API_BASE_URL CLOUDFLARE_API_TOKEN=fake-api-token CLOUDFLARE_ACCOUNT_ID=023e105f4ecef8ad9ca31a8372d0c353
CLOUDFLARE_API_BASE_URL=$(cat "$work/url")
export WRANGLER_SEND_METRICS=false CI=1 HOME=$work WRANGLER_LOG_PATH=$work/logs
cd "$work"

step() { # runs wrangler, and prints its output only if it fails
    printf '== wrangler %s\n' "$*"
    "$cache/node_modules/.bin/wrangler" "$@" >"$work/out" 2>&1 </dev/null || { cat "$work/out"; exit 1; }
}
says() { grep -q -- "$1" "$work/out" || { printf 'missing: %s\n' "$1"; cat "$work/out"; exit 1; }; }
api() { curl -sS -H "authorization: Bearer $CLOUDFLARE_API_TOKEN" "$CLOUDFLARE_API_BASE_URL/accounts/$CLOUDFLARE_ACCOUNT_ID/$1"; }

step whoami
says "$CLOUDFLARE_ACCOUNT_ID"
step d1 create shop
database=$(api "d1/database?name=shop" | grep -o '"uuid":"[^"]*"' | cut -d'"' -f4)
step d1 list
says shop
step r2 bucket create shop-files
step kv namespace create shop-kv
namespace=$(api storage/kv/namespaces | grep -o '"id":"[^"]*"' | cut -d'"' -f4)
step kv key put --namespace-id "$namespace" --remote greeting hello
step kv key get --namespace-id "$namespace" --remote greeting
says hello
step queues create shop-queue

mkdir site
printf '<h1>hi</h1>\n' >site/index.html
printf 'body{}\n' >site/style.css
step pages project create shop-site --production-branch main
step pages deploy site --project-name shop-site --branch main --commit-dirty=true --skip-caching
says "Deployment complete"
printf '{"API_KEY":"hidden"}' >secrets.json
step pages secret bulk secrets.json --project-name shop-site
step pages secret list --project-name shop-site
says API_KEY
step pages deployment list --project-name shop-site

cat >wrangler.json <<JSON
{
  "name": "shop-worker", "main": "index.js", "compatibility_date": "2026-04-01", "workers_dev": true,
  "kv_namespaces": [{"binding": "KV", "id": "$namespace"}],
  "d1_databases": [{"binding": "DB", "database_name": "shop", "database_id": "$database"}],
  "r2_buckets": [{"binding": "FILES", "bucket_name": "shop-files"}],
  "queues": {"producers": [{"binding": "QUEUE", "queue": "shop-queue"}], "consumers": [{"queue": "shop-queue"}]},
  "vars": {"GREETING": "hello"}
}
JSON
printf 'export default { async fetch() { return new Response("hi") }, async queue() {} }\n' >index.js
step deploy
says shop-worker
step deploy --message again
step secret bulk secrets.json
step secret list
says API_KEY
printf 'other' >secret
printf '== wrangler secret put\n'
"$cache/node_modules/.bin/wrangler" secret put SECOND <secret >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
step deployments list
step versions list
# Without --keep-vars, wrangler keeps no bindings, and the fake drops the secrets, as our contract of the API specifies.
step deploy --keep-vars
step secret list
says SECOND
step queues consumer remove shop-queue shop-worker
step delete --force
step queues delete shop-queue
step kv namespace delete --namespace-id "$namespace" --skip-confirmation
step r2 bucket delete shop-files
step d1 delete shop --skip-confirmation
step pages project delete shop-site --yes
printf '== wrangler accepts the fake\n'
