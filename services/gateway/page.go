package gateway

// page is the front page where Loom was not built in; it contains nothing from
// clients.
const page = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Weft</title>
<meta name="viewport" content="width=device-width">
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:46em;margin:2em auto;padding:0 1em}
td{padding:.1em 1em .1em 0;vertical-align:top}code{font-size:.95em}</style>
<h1>Weft</h1>
<p>An SDN controller. Its page in the browser, Loom, was not built into this program: <code>make build</code> does so where
Node.js is installed. On this port:</p>
<table>
<tr><td><a href="/v1/info"><code>/v1/info</code></a><td>what runs: version, services, pipeline
<tr><td><a href="/v1/switches"><code>/v1/switches</code></a><td>switches; <code>/v1/switches/DPID/flows</code>, <code>groups</code>, <code>ports</code>, <code>port-stats</code>, <code>table-stats</code> of one
<tr><td><a href="/v1/ports"><code>/v1/ports</code></a>, <a href="/v1/port-roles"><code>/v1/port-roles</code></a><td>ports and what is behind them
<tr><td><a href="/v1/links"><code>/v1/links</code></a><td>links between switches
<tr><td><a href="/v1/hosts"><code>/v1/hosts</code></a><td>hosts; <code>/v1/hosts/ADDRESS</code> of one
<tr><td><code>/v1/paths/SRC/DST</code>, <a href="/v1/tree"><code>/v1/tree</code></a><td>paths between switches, and the broadcast tree
<tr><td><a href="/v1/routes"><code>/v1/routes</code></a>, <a href="/v1/flooding"><code>/v1/flooding</code></a><td>what forwarding has programmed
<tr><td><a href="/v1/flows"><code>/v1/flows</code></a>, <a href="/v1/sync"><code>/v1/sync</code></a><td>desired flow entries, and how far switches have them; POST to add, to <code>/v1/flows:delete</code> to delete
<tr><td><a href="/v1/stats/ports"><code>/v1/stats/ports</code></a>, <a href="/v1/stats/tables"><code>tables</code></a>, <a href="/v1/stats/flows"><code>flows</code></a><td>counters and rates
<tr><td><code>POST /v1/pipeline:watch</code><td>sampled packets on their way through the pipeline, as a stream of lines
<tr><td><code>/v1/events?subjects=A,B</code><td>events, by WebSocket
<tr><td><a href="/openapi.json"><code>/openapi.json</code></a><td>all of the above for programs; the same methods by gRPC on this port
<tr><td><a href="/metrics"><code>/metrics</code></a>, <a href="/healthz"><code>/healthz</code></a><td>for Prometheus and probes
</table>
<p>On the command line: <code>weft get switches</code>, <code>weft --help</code>.</p>
`
