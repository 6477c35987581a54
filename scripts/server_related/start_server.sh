#!/usr/bin/env bash
# start_server.sh [OPTIONS OF akf server]
set -euo pipefail
. "$(dirname "$0")/../../env.sh"
exec python3 -m akf server "$@"
