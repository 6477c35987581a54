# Source this: from now on `akf`, `python -m akf` and the scripts are this checkout's.
_akf_root=$(dirname "$(readlink -f "${BASH_SOURCE[0]:-$0}")")
export PYTHONPATH="$_akf_root/src${PYTHONPATH:+:$PYTHONPATH}"
unset _akf_root
