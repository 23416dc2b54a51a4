#!/bin/sh
# HAProxy as an agent: HTTP/2 on both sides.
set -- haproxy 'apt-get install --no-install-recommends haproxy'
. "$(dirname "$0")/common.sh"
{
	cat <<END
defaults
	mode http
	timeout connect 5s
	timeout client 1h
	timeout server 1h
frontend consumers
	bind $LISTEN
	default_backend producers
backend producers
	balance roundrobin
	http-reuse always
END
	n=0
	for backend in $BACKENDS; do
		n=$((n + 1))
		echo "	server producer$n $backend proto h2"
	done
} >"$dir/haproxy.cfg"
exec haproxy -db -f "$dir/haproxy.cfg"
