#!/bin/sh
# Installs the mock model server of package.json, exactly as the lock file says, and
# runs the agents of interop against it. Where node or the registry is missing it says
# so and is no failure.
#
# usage: run.sh [GO]
set -eu
go=${1:-go}
here=$(cd "$(dirname "$0")" && pwd)

missing() { echo "interop: skipped, $1"; exit 0; }

command -v node >/dev/null || missing "node is not installed"
command -v npm >/dev/null || missing "npm is not installed"
node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || a === 20 && b >= 15 ? 0 : 1)' ||
	missing "node $(node --version) is older than 20.15"
lock=$here/package-lock.json
done=$here/node_modules/.lock
if ! cmp -s "$lock" "$done"; then
	(cd "$here" && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error) ||
		missing "npm ci failed: the package cannot be fetched"
	cp "$lock" "$done"
fi
cd "$here/../../.."
exec "$go" test -tags interop -count=1 -timeout 10m -v ./interop
