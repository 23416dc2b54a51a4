package plan_test

import (
	"strings"
	"testing"

	"github.com/weft-sdn/weft/plan"
)

func TestDiff(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"nothing", splitPlan, splitPlan, ""},
		{"order of workers", "workers: {a: {services: [x]}, b: {services: [y]}}", "workers: {b: {services: [y]}, a: {services: [x]}}", ""},
		{"defaults said", "workers: {a: {services: [x]}}", "workers: {a: {services: [x], replicas: 1, balance: flow}}\ntransport: grpc", ""},
		{"replicas", at("  b: {services: [x]}\n", ""), at("  b: {services: [x], replicas: 3}\n", ""), "~ worker b: replicas 1 -> 3"},
		{"transport", splitPlan, splitPlan + "transport: ws\n", "~ transport: grpc -> ws"},
		{"all links", splitPlan, splitPlan + "links: [{from: '*', to: '*', transport: rest}]\n", "~ transport between all workers: grpc -> rest"},
		{"links", splitPlan, splitPlan + "links: [{from: '*', to: paths, transport: nats}, {from: paths, to: gateway, transport: rest}]\n", `~ transport from discovery to paths: grpc -> nats
~ transport from forwarding to paths: grpc -> nats
~ transport from gateway to paths: grpc -> nats
~ transport from paths to gateway: grpc -> rest
~ transport from southbound to paths: grpc -> nats`},
		{"links without effect", splitPlan, splitPlan + "links: [{from: paths, to: gateway, transport: grpc}]\n", "~ links: none -> paths to gateway by grpc"},
		{"keys", at("", ""), "name: q\nevents: ws\nbalance: least\npipeline: [discovery, forwarding]\nbus: {url: nats://a, credentials: c, replicas: 3}\nworkers: {all: {services: [southbound, discovery, paths, forwarding, gateway]}}", `~ name: p -> q
~ events: nats -> ws
~ balance: flow -> least
~ pipeline: none -> discovery, forwarding
~ bus.url: none -> nats://a
~ bus.credentials: none -> c
~ bus.replicas: 1 -> 3`},
		{"worker's keys", at("", ""), at("", "class: compute\nnice: 5\ncpus: 0-1\nmemory: 1GiB\nlisten: ':7000'\nmachine: m\nbalance: least\nenv: {A: b}"), `~ worker all: balance flow -> least
~ worker all: class none -> compute
~ worker all: nice none -> 5
~ worker all: cpus none -> 0-1
~ worker all: memory none -> 1GiB
~ worker all: listen 127.0.0.1:0 -> :7000
~ worker all: machine none -> m
~ worker all: env.A none -> "b"`},
		{"order of services", "workers: {a: {services: [x, y]}}", "workers: {a: {services: [y, x]}}", "~ worker a: order of services x, y -> y, x"},
		{"moved", "workers: {a: {services: [x, y]}, b: {services: [z]}}", "workers: {a: {services: [x]}, b: {services: [y, z]}}", "~ service y: moves from a to b"},
		{"added", "workers: {a: {services: [x]}, b: {services: [z]}}", "workers: {a: {services: [x, y]}, b: {services: [x, z]}}", "+ service x: in b\n+ service y: in a"},
		{"removed", "workers: {a: {services: [x, y]}, b: {services: [x, z]}}", "workers: {a: {services: [x]}, b: {services: [z]}}", "- service x: no longer in b\n- service y: no longer in a"},
		{"settings", at("config: {paths: {a: 1}}\n", "settings: {gateway: {listen: ':0'}}"), at("config: {paths: {a: 2, b: [x]}, gateway: {on: true}}\n", ""), `~ settings of gateway: none -> {"on": true}
~ settings of paths: {a: 1} -> {a: 2, b: [x]}
~ settings of gateway in worker all: {listen: ":0"} -> none`},
		{"partitions", at("partitions: {a: {switches: [1-3]}, b: {switches: [rest]}}\n", ""), at("partitions: {b: {switches: [rest, 1]}, c: {switches: [7]}}\n", "partition: b"), `- partition a: switches 0000000000000001-0000000000000003
~ partition b: switches rest -> 0000000000000001, rest
+ partition c: switches 0000000000000007
~ worker all: partition none -> b`},
		{"split to scale", splitPlan, scalePlan, `~ name: split -> scale
~ transport: grpc -> ws
- worker southbound: southbound
- worker discovery: discovery
- worker paths: paths
- worker forwarding: forwarding
+ worker edge: southbound, discovery
+ worker routing: paths, forwarding; 3 replicas
~ worker gateway: machine none -> other
~ service discovery: moves from discovery to edge
~ service forwarding: moves from forwarding to routing
~ service paths: moves from paths to routing
~ service southbound: moves from southbound to edge
~ links: none -> edge to routing by rest, * to edge by grpc`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, change := range plan.Diff(parse(t, c.old), parse(t, c.new)) {
				got = append(got, change.String())
			}
			if strings.Join(got, "\n") != c.want {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), c.want)
			}
		})
	}
}
