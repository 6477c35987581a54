#!/usr/bin/env bash
# start_worker_service.sh [BACKEND [ARCH [DEVICES [PORT]]]]: what is not given is WORKER_BACKEND, WORKER_ARCH, ...
set -euo pipefail
. "$(dirname "$0")/../../env.sh"
words=()
for option in --backend --arch --devices --port; do
    [ $# -eq 0 ] && break
    words+=("$option" "$1")
    shift
done
exec python3 -m akf worker "${words[@]}" "$@"
