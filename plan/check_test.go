package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weft-sdn/weft"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/plan"
)

// at builds the text of a plan that is right but for what is put in: lines of
// the whole plan, and of worker all, which begins at line 3.
func at(whole, worker string) string {
	text := "name: p\nworkers:\n  all:\n    services: [southbound, discovery, paths, forwarding, gateway]\n"
	for line := range strings.Lines(worker) {
		text += "    " + line
	}
	if worker != "" {
		text += "\n"
	}
	return text + whole
}

// Every mistake that is found without knowing the services, with its whole text.
func TestMistakes(t *testing.T) {
	const known = "name, transport, events, balance, pipeline, partial, bus, partitions, workers, apps, links, config"
	for _, c := range []struct{ name, text, want string }{
		{"right", at("", ""), "no mistake"},
		{"nothing", "", "p.yaml: want keys with values, such as workers: {all: {services: [southbound, forwarding]}}, not nothing; allowed: " + known},
		{"a list", "- a\n", "p.yaml:1: want keys with values, not a list; allowed: " + known},
		{"not YAML", "workers: [\n", "p.yaml:1: not well-formed YAML: want a value; is a bracket not closed?"},
		{"tab", "name: x\nworkers:\n\ta: {}\n", "p.yaml:3: not well-formed YAML: a value cannot begin with a tab, @, ` or %; indent with spaces, or put the text into quotes"},
		{"indentation", "name: x\nworkers:\n  a:\n    services: [x]\n    nice: 1\n   class: latency\n", "p.yaml:6: not well-formed YAML: want another key of this block, or the end of it; look at how far the line is indented"},
		{"list in a block", "workers:\n  a:\n    nice: 1\n    cpus: 1\n    - b\n", "p.yaml:5: not well-formed YAML: want another key of this block, or the end of it; look at how far the line is indented"},
		{"key in a list", "name: x\nlinks:\n- a\n- b\nc\n", "p.yaml:5: not well-formed YAML: could not find expected ':'"},
		{"list without end", "name: x\nlinks: [a,\n b\nc: d\n", "p.yaml:2: not well-formed YAML: the list that begins with [ wants , or ]"},
		{"text without end", "name: x\nlinks: 'a\nb: c\n", "p.yaml:2: not well-formed YAML: found unexpected end of stream"},
		{"control character", "name: x\nlinks: [a,\n b]\nbus: \x01\n", "p.yaml:4: not well-formed YAML: control characters are not allowed"},
		{"unknown alias", "name: x\nbus: *x\n", "p.yaml:2: a plan has no anchors, aliases, merge keys or tags; write the value itself"},
		{"two documents", "a: 1\n---\nb: 1\n", "p.yaml: 2 YAML documents; put everything into one (take out the lines ---)"},
		{"not UTF-8", "name: \xff\n", "p.yaml:1: not text in UTF-8; write it so"},
		{"too long", strings.Repeat("#", 1<<18+1), "p.yaml: 262145 octets; a plan has at most 262144"},
		{"too many lines", strings.Repeat("\n", 10001), "p.yaml: 10001 lines; a plan has at most 10000"},
		{"too many dashes", "links:\n" + strings.Repeat("- ", 200), "p.yaml:2: nested too deeply; at most 32 levels are allowed"},
		{"too deep", "config: {x: {a: " + strings.Repeat("[", 200), "p.yaml:1: nested too deeply; at most 32 levels are allowed"},
		{"deep", at("config: {x: {a: "+strings.Repeat("[", 40)+strings.Repeat("]", 40)+"}}", ""), "p.yaml:5: nested too deeply; at most 32 levels are allowed"},
		{"unknown key", at("worker: {}\n", ""), "p.yaml:5: unknown key worker; allowed: " + known + "; did you mean workers?"},
		{"no value", at("transport:\n", ""), "p.yaml:5: transport: no value; give one, or take the key out"},
		{"key twice", at("balance: flow\nbalance: flow\n", ""), "p.yaml:6: key balance is there twice, first on line 5; keep one of them"},
		{"worker twice", at("", "") + "  all: {services: [x]}\n", "p.yaml:5: key all is there twice, first on line 3; keep one of them"},
		{"anchor", at("transport: &t grpc\n", ""), "p.yaml:5: a plan has no anchors, aliases, merge keys or tags; write the value itself"},
		{"merge", at("config:\n  <<: {}\n", ""), "p.yaml:6: a plan has no anchors, aliases, merge keys, tags or composite keys; write the key itself"},
		{"name", "name: my plan\nworkers: {a: {services: [x]}}\n", `p.yaml:1: name: want up to 50 letters, digits, dots, dashes and underscores, not "my plan"`},
		{"name no text", "name: [a]\nworkers: {a: {services: [x]}}\n", "p.yaml:1: name: want text, not a list"},
		{"transport", at("transport: tcp\n", ""), `p.yaml:5: transport: want one of grpc, ws, rest, shm, nats, not "tcp"`},
		{"inproc", at("transport: inproc\n", ""), `p.yaml:5: transport: want one of grpc, ws, rest, shm, nats, not "inproc"`},
		{"events", at("events: [nats]\n", ""), "p.yaml:5: events: want one of grpc, ws, rest, shm, nats, not a list"},
		{"balance", at("balance: random\n", ""), `p.yaml:5: balance: want one of flow, switch, round-robin, least, not "random"`},
		{"pipeline", at("pipeline: discovery\n", ""), `p.yaml:5: pipeline: want a list of stages, such as [discovery, hosts], not "discovery"`},
		{"pipeline twice", at("pipeline:\n- discovery\n- discovery\n", ""), "p.yaml:7: pipeline: discovery is listed twice; list it once"},
		{"pipeline number", at("pipeline: [5]\n", ""), `p.yaml:5: pipeline: want the name of a service, not "5"`},
		{"bus key", at("bus:\n  urls: x\n", ""), "p.yaml:6: unknown key bus.urls; allowed: url, credentials, replicas; did you mean url?"},
		{"bus url", at("bus: {url: \"10.0.0.1:4222\"}\n", ""), `p.yaml:5: bus.url: want the address of a NATS server, such as nats://10.0.0.1:4222, several separated by commas, not "10.0.0.1:4222"`},
		{"bus replicas", at("bus: {url: \"nats://a\", replicas: 6}\n", ""), "p.yaml:5: bus.replicas: want 1, 3 or 5, not 6"},
		{"bus replicas text", at("bus: {replicas: many}\n", ""), `p.yaml:5: bus.replicas: want a whole number, not "many"`},
		{"bus copies of one", at("bus: {replicas: 3}\n", ""), "p.yaml:5: bus.replicas: 3 copies of the state need as many servers, but the embedded one is alone; name a cluster in bus.url, or set bus.replicas to 1"},
		{"bus credentials", at("bus: {credentials: x}\n", ""), "p.yaml:5: bus.credentials: the embedded server asks for none; name a server in bus.url, or take bus.credentials out"},
		{"no workers", "name: x\n", "p.yaml: workers: there are none; add one, such as all: {services: [southbound, forwarding]}"},
		{"workers a list", "workers: [a]\n", "p.yaml:1: workers: want a name for each worker with its services below, not a list"},
		{"worker a list", "workers:\n  a: [x]\n", "p.yaml:2: workers.a: want keys with values, not a list; allowed: services, replicas, autoscale, standby, balance, partition, class, nice, cpus, cpu_quota, memory, listen, env, machine, settings"},
		{"worker key", at("", "replica: 3"), "p.yaml:5: unknown key workers.all.replica; allowed: services, replicas, autoscale, standby, balance, partition, class, nice, cpus, cpu_quota, memory, listen, env, machine, settings; did you mean replicas?"},
		{"worker name", "workers:\n  A_b: {services: [x]}\n", `p.yaml:2: workers.A_b: the name of a worker is up to 50 lower-case letters, digits and dashes, and begins with a letter, not "A_b"`},
		{"no services", "workers:\n  a: {services: []}\n", "p.yaml:2: workers.a: no services; list some, such as services: [hosts]"},
		{"services", "workers:\n  a:\n    services: x\n", `p.yaml:3: workers.a.services: want a list of services, such as [discovery, hosts], not "x"`},
		{"service twice", "workers:\n  a: {services: [x, x]}\n", "p.yaml:2: workers.a.services: x is listed twice; list it once"},
		{"service name", "workers:\n  a: {services: [X-y]}\n", `p.yaml:2: workers.a.services: "X-y" is no service's name, which is lower-case letters and digits`},
		{"replicas", at("", "replicas: 0"), "p.yaml:5: workers.all.replicas: want 1 to 256, not 0"},
		{"replicas text", at("", "replicas: three"), `p.yaml:5: workers.all.replicas: want a whole number, not "three"`},
		{"replicas listen", at("", "replicas: 2\nlisten: 127.0.0.1:7000"), "p.yaml:6: workers.all.listen: 2 replicas cannot all listen at 127.0.0.1:7000; set the port to 0, so that each gets one of its own, or give each replica a worker of its own"},
		{"replica's name", at("  r: {services: [x], replicas: 2}\n  r-2: {services: [y]}\n", ""), "p.yaml:6: workers.r-2: one of the 2 replicas of worker r is called so; rename the worker"},
		{"no replica's name", at("  r: {services: [x], replicas: 2}\n  r-3: {services: [y]}\n", ""), "no mistake"},
		{"class", at("", "class: fast"), `p.yaml:5: workers.all.class: want one of realtime, latency, compute, not "fast"`},
		{"nice", at("", "nice: -21"), "p.yaml:5: workers.all.nice: want -20 (first) to 19 (last), not -21"},
		{"cpus", at("", "cpus: 3-1"), `p.yaml:5: workers.all.cpus: want processors as "0", "0,2" or "0-3", numbered from 0 to 4095, not "3-1"`},
		{"memory", at("", "memory: 512"), `p.yaml:5: workers.all.memory: want an amount of memory, such as 512MiB or 2GiB, not "512"`},
		{"memory too little", at("", "memory: 1MiB"), "p.yaml:5: workers.all.memory: want 16MiB to 1024TiB, not 1MiB"},
		{"memory too much", at("", "memory: 99999999999999999TiB"), `p.yaml:5: workers.all.memory: want an amount of memory, such as 512MiB or 2GiB, not "99999999999999999TiB"`},
		{"listen", at("", "listen: everywhere"), `p.yaml:5: workers.all.listen: want HOST:PORT, such as 127.0.0.1:0, not "everywhere"`},
		{"env", at("", "env: {a b: c}"), `p.yaml:5: workers.all.env: "a b" is no name of a variable, which is letters, digits and underscores`},
		{"env value", at("", "env:\n  A: [b]"), "p.yaml:6: workers.all.env.A: want text, not a list"},
		{"env NUL", at("", `env: {A: "\x00"}`), "p.yaml:5: workers.all.env.A: the value has a NUL character in it, which no environment can hold"},
		{"env a list", at("", "env: [A=b]"), "p.yaml:5: workers.all.env: want names of variables with their values, not a list"},
		{"machine", at("", "machine: a b"), `p.yaml:5: workers.all.machine: want the name of a machine, not "a b"`},
		{"settings elsewhere", at("", "settings: {stats: {a: 1}}"), "p.yaml:5: workers.all.settings: service stats is not in this worker; its services are southbound, discovery, paths, forwarding, gateway"},
		{"settings no keys", at("", "settings: {paths: 5}"), "p.yaml:5: workers.all.settings.paths: want keys with values, those that service paths has, not a value"},
		{"config a list", at("config: [paths]\n", ""), "p.yaml:5: config: want a section for each service, not a list"},
		{"config's service", at("config: {Paths: {a: 1}}\n", ""), `p.yaml:5: config.Paths: "Paths" is no service's name, which is lower-case letters and digits`},
		{"worker's partition", at("", "partition: east"), `p.yaml:5: workers.all.partition: unknown partition "east"; allowed: none`},
		{"worker's other partition", at("partitions: {west: {switches: [rest]}}\n", "partition: east"), `p.yaml:5: workers.all.partition: unknown partition "east"; allowed: west`},
		{"partitions a list", at("partitions: [east]\n", ""), "p.yaml:5: partitions: want a name for each partition with its switches below, not a list"},
		{"partition's name", at("partitions: {5: {switches: [rest]}}\n", ""), `p.yaml:5: partitions.5: the name of a partition is up to 50 lower-case letters, digits and dashes, and begins with a letter, not "5"`},
		{"partition's key", at("partitions:\n  a: {switches: [rest], switch: 1}\n", ""), "p.yaml:6: unknown key partitions.a.switch; allowed: switches; did you mean switches?"},
		{"no switches", at("partitions:\n  a: {switches: []}\n  b: {switches: [rest]}\n", ""), "p.yaml:6: partitions.a: no switches; list some, such as [1-8], or say [rest]"},
		{"switches", at("partitions:\n  a: {switches: 1-8}\n  b: {switches: [rest]}\n", ""), `p.yaml:6: partitions.a.switches: want a list of switches, such as [1-8, 0000000000000010] or [rest], not "1-8"`},
		{"switch", at("partitions:\n  a: {switches: [rest, s1]}\n", ""), `p.yaml:6: partitions.a.switches: "s1": want a switch or a range of switches in hexadecimal digits, such as 10 or 1-8, or rest`},
		{"switch a list", at("partitions:\n  a: {switches: [rest, [1]]}\n", ""), "p.yaml:6: partitions.a.switches: want a switch, a range of switches, or rest, not a list"},
		{"empty range", at("partitions:\n  a: {switches: [rest, 8-1]}\n", ""), `p.yaml:6: partitions.a.switches: "8-1": the range is empty, its end is before its beginning; write 1-8`},
		{"two rests", at("partitions:\n  a: {switches: [rest]}\n  b: {switches: [rest]}\n", ""), "p.yaml:7: partitions.b.switches: partition a has the rest of the switches already; only one can"},
		{"overlap", at("partitions:\n  a: {switches: [1-8]}\n  b: {switches: [rest,\n   7-9]}\n", ""), "p.yaml:8: partitions.b.switches: 0000000000000007-0000000000000008 is in partition a already; a switch is in one, and listed once"},
		{"overlap within", at("partitions:\n  a: {switches: [rest, 1-8, 3]}\n", ""), "p.yaml:6: partitions.a.switches: 0000000000000003 is in partition a already; a switch is in one, and listed once"},
		{"gap", at("partitions:\n  a: {switches: [0-8]}\n  b: {switches: [a-ffffffffffffffff]}\n", ""), "p.yaml:5: partitions: switches 0000000000000009 are in none; add rest to the switches of one partition"},
		{"gap at the end", at("partitions:\n  a: {switches: [0-8]}\n", ""), "p.yaml:5: partitions: switches 0000000000000009-ffffffffffffffff are in none; add rest to the switches of one partition"},
		{"nothing left", at("partitions:\n  a: {switches: [0-ffffffffffffffff, rest]}\n", ""), "p.yaml:6: partitions.a.switches: no switches are left for rest; take it out"},
		{"app", at("apps: {blocker: , b: {absent: skip, timeout: 200ms}}\n", ""), "no mistake"},
		{"app may call l2vpn", at("apps:\n  a: {kind: observer, may: [l2vpn.*, l2vpn.SetCircuits]}\n", ""), "no mistake"},
		{"app's key", at("apps:\n  a: {absence: skip}\n", ""), "p.yaml:6: unknown key apps.a.absence; allowed: kind, may, switches, tables, entries, packets_per_s, absent, timeout; did you mean absent?"},
		{"app's absent", at("apps:\n  a: {absent: wait}\n", ""), `p.yaml:6: apps.a.absent: want one of hold, skip, drop, not "wait"`},
		{"app's timeout", at("apps:\n  a: {timeout: 1}\n", ""), `p.yaml:6: apps.a.timeout: want a time, such as 500ms or 1s, not "1"`},
		{"app's long timeout", at("apps:\n  a: {timeout: 1m}\n", ""), "p.yaml:6: apps.a.timeout: want 10ms to 10s, not 1m0s"},
		{"app's timeout 0", at("apps:\n  a: {timeout: 0s}\n", ""), "p.yaml:6: apps.a.timeout: want 10ms to 10s, not 0s"},
		{"app's name", at("apps: {A_b: }\n", ""), `p.yaml:5: apps.A_b: the name of an app is up to 40 lower-case letters, digits and dashes, and begins with a letter, not "A_b"`},
		{"apps a list", at("apps: [a]\n", ""), "p.yaml:5: apps: want a name for each app, not a list"},
		{"app in no pipeline", at("pipeline: [discovery]\napps: {a: }\n", ""), "p.yaml:6: apps.a: the app is not in pipeline, so it would see no packet; list it there in its place, or take it out here"},
		{"links", at("links: {from: a}\n", ""), "p.yaml:5: links: want a list, such as [{from: southbound, to: routing, transport: ws}], not keys with values"},
		{"link's key", at("links:\n- {from: all, to: all, by: ws}\n", ""), "p.yaml:6: unknown key links[0].by; allowed: from, to, transport\np.yaml:6: links[0]: no transport; give one of grpc, ws, rest, shm, nats"},
		{"link's end", at("links:\n- {to: al, transport: ws}\n", ""), `p.yaml:6: links[0]: no from; name a worker, or * for any` + "\n" + `p.yaml:6: links[0].to: unknown worker "al"; allowed: *, all; did you mean all?`},
		{"link's end a list", at("links:\n- {from: [1], to: all, transport: ws}\n", ""), "p.yaml:6: links[0].from: want text, not a list"},
		{"link's end nothing", at("links:\n- {from: , to: all, transport: ws}\n", ""), "p.yaml:6: links[0].from: no value; give one, or take the key out"},
		{"link's end an alias", at("links:\n- {from: all, to: all, transport: &a ws}\n- {from: *a, to: all, transport: ws}\n", ""), "p.yaml:6: a plan has no anchors, aliases, merge keys or tags; write the value itself\np.yaml:7: a plan has no anchors, aliases, merge keys or tags; write the value itself"},
		{"link a text", at("links: [all]\n", ""), "p.yaml:5: links[0]: want keys with values, not text; allowed: from, to, transport"},
		{"link's transport nothing", at("links:\n- {from: all, to: all, transport: }\n", ""), "p.yaml:6: links[0].transport: no value; give one, or take the key out"},
		{"services a list of lists", at("  b: {services: [[x]], settings: {x: {a: 1}}}\n", ""), "p.yaml:5: workers.b.services: want the name of a service, not a list"},
		{"services nothing", at("  b: {services: }\n", ""), "p.yaml:5: workers.b.services: no value; give one, or take the key out"},
		{"services tagged", at("  b: {services: [!x a]}\n", ""), "p.yaml:5: a plan has no anchors, aliases, merge keys or tags; write the value itself"},
		{"bus url a list", at("bus: {url: [a], credentials: x, replicas: 3}\n", ""), "p.yaml:5: bus.url: want text, not a list"},
		{"workers nothing", "name: x\nworkers:\n", "p.yaml:2: workers: there are none; add one, such as all: {services: [southbound, forwarding]}"},
		{"too many links", at("links: ["+strings.Repeat("{},", 4097)+"]\n", ""), "p.yaml:5: links: 4097 of them; at most 4096 are allowed"},
		{"link's transport", at("links:\n- {from: all, to: all, transport: x}\n", ""), `p.yaml:6: links[0].transport: want one of grpc, ws, rest, shm, nats, not "x"`},
		{"shared memory of two machines", at("  b: {services: [x], machine: m1}\ntransport: shm\n", ""), "p.yaml:6: transport: shm, but worker all is on the supervisor's machine, and b on machine m1: the memory of a machine is its own; take another transport from all to b, such as grpc"},
		{"shared memory of two machines by a link", at("  b: {services: [x], machine: m1}\n  c: {services: [x], machine: m2}\nlinks:\n- {from: all, to: all, transport: shm}\n- {from: b, to: '*', transport: shm}\n", ""), "p.yaml:9: links[1].transport: shm, but worker b is on machine m1, and all on the supervisor's machine: the memory of a machine is its own; take another transport from b to all, such as grpc"},
		{"events by shared memory", at("  b: {services: [x], machine: m1}\nevents: shm\n", ""), "p.yaml:6: events: shm, but worker all is on the supervisor's machine, and b on machine m1: the memory of a machine is its own; take grpc, ws, rest or nats"},
		{"shared memory of one machine", "workers:\n  a: {services: [x], machine: m1}\n  b: {services: [x], machine: m1}\ntransport: shm\nevents: shm\n", "no mistake"},
		{"shared memory within machines", at("  b: {services: [x], machine: m1}\n  c: {services: [x], machine: m1}\ntransport: shm\nlinks:\n- {from: all, to: '*', transport: grpc}\n- {from: '*', to: all, transport: grpc}\n", ""), "no mistake"},
		{"link in vain", at("links:\n- {from: '*', to: all, transport: ws}\n- {from: all, to: all, transport: grpc}\n", ""), "p.yaml:7: links[1]: links[0] (from * to all) comes first and matches all that this one does; put this one before it, or take one of them out"},
		{"all at once", at("transport: x\nevents: y\n", "nice: 99\ncpus: a"), `p.yaml:5: workers.all.nice: want -20 (first) to 19 (last), not 99
p.yaml:6: workers.all.cpus: want processors as "0", "0,2" or "0-3", numbered from 0 to 4095, not "a"
p.yaml:7: transport: want one of grpc, ws, rest, shm, nats, not "x"
p.yaml:8: events: want one of grpc, ws, rest, shm, nats, not "y"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := plan.Parse("p.yaml", []byte(c.text))
			wantText(t, err, c.want)
		})
	}
}

// Every way in which a plan does not fit the services, with its whole text.
func TestCheck(t *testing.T) {
	const parts = "partitions: {east: {switches: [1]}, west: {switches: [rest]}}\nworkers:\n"
	const west = "  west: {partition: west, services: [southbound, discovery, forwarding, paths], settings: {southbound: {listen: [unix:/a]}}}\n"
	for _, c := range []struct{ name, text, want string }{
		{"one", at("", ""), "no mistake"},
		{"split", splitPlan, "no mistake"},
		{"scale", scalePlan, "no mistake"},
		{"multi", multiPlan, "no mistake"},
		{"unknown service", "workers:\n  a:\n    services: [southbound,\n      nat]\n", `p.yaml:4: workers.a.services: unknown service "nat"; allowed: southbound, discovery, paths, forwarding, gateway`},
		{"unknown settings", at("config:\n  nat: {a: 1}\n", ""), `p.yaml:6: config.nat: unknown service "nat"; allowed: southbound, discovery, paths, forwarding, gateway`},
		{"nothing to set", at("config:\n  discovery: {a: 1}\n", "settings: {paths: {b: 1}}"), "p.yaml:5: workers.all.settings.paths: service paths has nothing to configure; take its settings out\np.yaml:7: config.discovery: service discovery has nothing to configure; take its settings out"},
		{"settings of one left out", "workers: {a: {services: [southbound]}}\nconfig:\n  gateway: {a: 1}\n", "p.yaml:3: config.gateway: service gateway is in no worker; add it to one, or take its settings out"},
		{"call without server", "workers:\n  a: {services: [southbound]}\n  b: {services: [forwarding, gateway], settings: {gateway: {listen: \":0\"}}}\n  c: {services: [discovery]}\n",
			"p.yaml:3: workers.b.services: forwarding calls paths.FindPath, but service paths is in no worker; add paths to workers.b.services"},
		{"subscription without publisher", "workers:\n  a: {services: [southbound]}\n  b: {services: [paths], replicas: 2}\n", "p.yaml:3: workers.b.services: paths subscribes to discovery.LinkChanged, but service discovery is in no worker; add discovery to workers.a.services"},
		{"nowhere to add", "workers:\n  b: {services: [paths], replicas: 2}\n", "p.yaml:2: workers.b.services: paths subscribes to discovery.LinkChanged, but service discovery is in no worker; add discovery to a worker without replicas"},
		{"no southbound", "workers:\n  a: {services: [discovery]}\n", "p.yaml:2: workers.a.services: discovery calls southbound.Send, but service southbound is in no worker; add southbound to workers.a.services"},
		{"single twice", "workers:\n  a: {services: [southbound, discovery]}\n  b: {services: [discovery]}\n", "p.yaml:3: workers.b.services: discovery is in worker a already, and there is one of it in the whole system; take it out of one of them"},
		{"southbound replicated", "workers:\n  a: {services: [southbound, discovery], replicas: 2}\n", "p.yaml:2: workers.a.replicas: 2, but southbound is in it, and there is one of it in the whole system; move southbound to a worker without replicas, or set replicas to 1\np.yaml:2: workers.a.replicas: 2, but discovery is in it, and there is one of it in the whole system; move discovery to a worker without replicas, or set replicas to 1"},
		{"single replicated", "workers:\n  a: {services: [southbound]}\n  b:\n    services: [discovery]\n    replicas: 2\n", "p.yaml:5: workers.b.replicas: 2, but discovery is in it, and there is one of it in the whole system; move discovery to a worker without replicas, or set replicas to 1"},
		{"listens twice", "workers:\n  a: {services: [southbound], listen: \"localhost:8181\"}\n  b: {services: [gateway, paths, discovery]}\n",
			"p.yaml:3: workers.b.settings.gateway.listen: listens at 127.0.0.1:8181, where worker a listens, too; give each an address of its own"},
		{"listens everywhere", "workers:\n  a: {services: [southbound], listen: \"127.0.0.1:7000\"}\n  b: {services: [paths, discovery], listen: \":7000\"}\n",
			"p.yaml:3: workers.b.listen: listens at :7000, where worker a listens, too; give each an address of its own"},
		{"listens on another machine", "workers:\n  a: {services: [southbound], listen: \"127.0.0.1:7000\"}\n  b: {services: [paths, discovery], listen: \":7000\", machine: b}\n", "no mistake"},
		{"listens by config", "workers:\n  a: {services: [southbound]}\n  b: {services: [gateway, paths, discovery]}\nconfig: {gateway: {listen: \"[::]:6653\"}}\n",
			"p.yaml:3: workers.b.settings.gateway.listen: listens at [::]:6653, where southbound of worker a listens, too; give each an address of its own"},
		{"replicas listen", "workers:\n  a: {services: [southbound, discovery]}\n  b:\n    services: [gateway, paths]\n    replicas: 2\n",
			"p.yaml:5: workers.b.replicas: 2, but gateway is in it and listens at 127.0.0.1:8181, where only one can; set workers.b.settings.gateway.listen to port 0, or move gateway to a worker without replicas"},
		{"replicas listen anywhere", "workers:\n  a: {services: [southbound, discovery]}\n  b: {services: [gateway, paths], replicas: 2, settings: {gateway: {listen: \"127.0.0.1:0\"}}}\n", "no mistake"},
		{"pipeline not a stage", at("pipeline: [discovery, paths, forwarding]\n", ""), "p.yaml:5: pipeline: paths is not a stage; take it out, or list it in apps if it is one; stages are: discovery, forwarding"},
		{"pipeline unknown", at("pipeline: [discovery, nat, forwarding]\n", ""), "p.yaml:5: pipeline: nat is not a stage; take it out, or list it in apps if it is one; stages are: discovery, forwarding"},
		{"apps", at("pipeline: [discovery, blocker, forwarding]\napps: {blocker: {absent: skip}}\n", ""), "no mistake"},
		{"apps without pipeline", at("apps: {blocker: , counter: {timeout: 100ms}}\n", ""), "no mistake"},
		{"app called as a service", at("apps: {paths: {absent: skip}}\n", ""), "p.yaml:5: apps.paths: a service is called so; call the app something else"},
		{"pipeline not there", "workers: {a: {services: [southbound, discovery]}}\npipeline: [discovery,\n forwarding]\n", "p.yaml:3: pipeline: forwarding is in no worker; take it out, or add it to one"},
		{"pipeline without one", at("pipeline: [discovery]\n", ""), "p.yaml:5: pipeline: forwarding is a stage but not listed, so it would see no packet; list it in its place, or take the service out of its worker"},
		{"partitioned without a partition", parts + "  a: {services: [southbound, discovery]}\n", "p.yaml:3: workers.a.services: southbound runs once for each partition, but the worker is of none; move southbound to a worker of each partition: east, west"},
		{"a partition without", parts + "  east: {partition: east, services: [southbound, discovery]}\n",
			"p.yaml:1: partitions.west: no southbound, which each partition needs one of (there is one in east); add southbound to a worker with partition: west\np.yaml:1: partitions.west: no discovery, which each partition needs one of (there is one in east); add discovery to a worker with partition: west"},
		{"a partition with less", parts + west + "  east: {partition: east, services: [southbound, forwarding, paths]}\n",
			"p.yaml:1: partitions.east: no discovery, which each partition needs one of (there is one in west); add discovery to workers.east.services"},
		{"single both ways", parts + "  east: {partition: east, services: [southbound, discovery]}\n  west: {partition: west, services: [southbound], settings: {southbound: {listen: [unix:/a]}}}\n  all: {services: [discovery]}\n",
			"p.yaml:5: workers.all.services: discovery is in a worker for all partitions and in workers of single ones (east); have it in one way only"},
		{"one network", parts + "  east: {partition: east, services: [southbound]}\n  west: {partition: west, services: [southbound], settings: {southbound: {listen: [unix:/a]}}}\n  all: {services: [discovery, paths, forwarding, gateway]}\n", "no mistake"},
		{"twice in a partition", parts + west + "  east: {partition: east, services: [southbound, discovery, forwarding, paths]}\n  east2: {partition: east, services: [discovery]}\n",
			"p.yaml:5: workers.east2.services: discovery is in worker east already, and there is one of it for each partition; take it out of one of them"},
		{"out of reach", parts + west + "  east: {partition: east, services: [southbound, discovery, forwarding]}\n",
			"p.yaml:4: workers.east.services: forwarding calls paths.FindPath, but paths is in workers of other partitions only (west); add paths to workers.east.services, or to a worker of no partition"},
		{"a stage out of reach", parts + west + "  east: {partition: east, services: [southbound, discovery, paths]}\n",
			"p.yaml:1: partitions.east: no forwarding, a stage of the pipeline; add forwarding to workers.east.services, or to a worker of no partition"},
		{"gateway for all", parts + west + "  east: {partition: east, services: [southbound, discovery, forwarding, paths]}\n  front: {services: [gateway]}\n", "no mistake"}, // FindPath is directed
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := plan.Parse("p.yaml", []byte(c.text))
			if err == nil {
				err = p.Check(network())
			}
			wantText(t, err, c.want)
		})
	}
}

// What services lack altogether, and a plan that was not read from a file.
func TestCheckWithoutPlaces(t *testing.T) {
	specs := network()
	specs[1].Stage, specs[1].Calls, specs[1].Subscribes = true, methods("nat.Translate"), subjects("nat.Changed")
	p := &plan.Plan{Name: "x", Transport: "grpc", Events: "nats", Balance: "flow", Bus: plan.Bus{Replicas: 1}, Workers: []plan.Worker{
		{Name: "a", Services: []string{"discovery"}, Replicas: 1, Balance: "flow", Listen: ":0"},
		{Name: "a", Services: []string{"paths", "paths"}, Replicas: 1, Balance: "", Class: "x", Listen: ":0"},
	}, Partitions: []plan.Partition{{Name: "p", Switches: []flow.DPIDRange{{First: 2, Last: 1}}, Rest: true}, {Name: "p", Switches: []flow.DPIDRange{{First: 5, Last: 5}}}}}
	wantText(t, p.Check(specs), strings.Join([]string{
		"partitions.p.switches: range 0000000000000002-0000000000000001 is empty: its end is before its beginning",
		"partitions.p: the name is there twice; give each partition its own",
		"workers.a: the name is there twice; give each worker its own",
		"workers.a.services: paths is listed twice; list it once",
		`workers.a.balance: want one of flow, switch, round-robin, least, not ""`,
		`workers.a.class: want one of realtime, latency, compute, not "x"`,
		"workers.a.services: discovery calls nat.Translate, which no service provides; is service nat missing in this build?",
		"workers.a.services: discovery subscribes to nat.Changed, which no service provides; is service nat missing in this build?",
		"pipeline: service southbound, which holds the switches and runs the pipeline, is in no worker; add southbound to one",
	}, "\n"))
}

func TestStageOfNoKnownPlace(t *testing.T) {
	specs := append(network(), weft.Spec{Name: "mirror", Stage: true, Scale: weft.Any})
	p := parse(t, at("", ""))
	p.Workers[0].Services = append(p.Workers[0].Services, "mirror")
	wantText(t, p.Check(specs), "p.yaml: pipeline: mirror is a stage but not listed, so it would see no packet; list it in its place, or take the service out of its worker")
	p.Pipeline = []string{"discovery", "mirror", "forwarding"}
	wantText(t, p.Check(specs), "no mistake")
	if got := fmt.Sprint(p.Stages(specs)); got != "[discovery mirror forwarding]" {
		t.Error(got)
	}
}
