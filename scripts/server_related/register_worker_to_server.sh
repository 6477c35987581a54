#!/usr/bin/env bash
# register_worker_to_server.sh SERVER_URL WORKER_URL BACKEND ARCH [CAPACITY]
set -euo pipefail
. "$(dirname "$0")/../../env.sh"
[ $# -ge 4 ] || { sed -n 2p "$0" >&2; exit 2; }
exec python3 -m akf worker register "$@"
