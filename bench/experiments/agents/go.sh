#!/bin/sh
# Go's httputil.ReverseProxy as an agent: HTTP/2 on both sides.
set -- weft 'make build, and put bin/weft on PATH'
. "$(dirname "$0")/common.sh"
set --
for backend in $BACKENDS; do
	set -- "$@" --to "http://$backend"
done
exec weft nf agent --listen "$LISTEN" "$@"
