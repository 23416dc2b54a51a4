#!/bin/sh
# nginx as an agent: HTTP/2 from consumers, or HTTP/1.1 from another nginx if BEHIND
# says so, and HTTP/1.1 to producers, for it speaks no HTTP/2 there.
set -- nginx 'apt-get install --no-install-recommends nginx'
. "$(dirname "$0")/common.sh"
protocol=http2
[ -z "${BEHIND-}" ] || protocol=
{
	cat <<END
daemon off;
user root;
worker_processes auto;
worker_rlimit_nofile 4096;
pid $dir/pid;
error_log stderr error;
events { worker_connections 2048; }
http {
	access_log off;
	client_body_buffer_size 1m;
	client_body_temp_path $dir/body;
	proxy_temp_path $dir/proxy;
	fastcgi_temp_path $dir/fastcgi;
	uwsgi_temp_path $dir/uwsgi;
	scgi_temp_path $dir/scgi;
	keepalive_requests 1000000000;
	upstream producers {
END
	for backend in $BACKENDS; do
		echo "		server $backend;"
	done
	cat <<END
		keepalive 128;
		keepalive_requests 1000000000;
	}
	server {
		listen $LISTEN $protocol;
		location / {
			proxy_pass http://producers;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_set_header Host \$http_host;
		}
	}
}
END
} >"$dir/nginx.conf"
exec nginx -e stderr -c "$dir/nginx.conf"
