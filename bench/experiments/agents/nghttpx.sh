#!/bin/sh
# nghttpx as an agent: HTTP/2 on both sides.
set -- nghttpx 'apt-get install --no-install-recommends nghttp2-proxy'
. "$(dirname "$0")/common.sh"
{
	echo "frontend=$(bare "$LISTEN"),${LISTEN##*:};no-tls"
	for backend in $BACKENDS; do
		echo "backend=$(bare "$backend"),${backend##*:};;proto=h2"
	done
	cat <<END
workers=$(nproc)
accesslog-file=/dev/null
errorlog-file=/dev/stderr
END
} >"$dir/nghttpx.conf"
exec nghttpx --conf="$dir/nghttpx.conf"
