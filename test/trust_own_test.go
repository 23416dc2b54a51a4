package test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weft-sdn/weft/api"
)

// intruderScript is a stage that, on a packet, adds and deletes what others have
// in the tables, and an entry and a group of its own.
const intruderScript = `import sys
import weft

app = weft.Stage(sys.argv[2], filter={"eth_type": "0x0800", "ip_proto": 6, "tcp_dst": sys.argv[3]})
match = lambda port: {"eth_type": "0x0800", "ip_proto": 6, "tcp_dst": port}

@app.packet
def intrude(packet):
    for port in (7001, 7002):  # the operator's, and the other app's
        packet.add_flow(match(port), ["normal"], priority=21000)
        packet.delete_flow(match(port), priority=21000)
    packet.add_flow(match(int(sys.argv[4])), priority=21000)
    packet.add_group(1, "all", [{"actions": ["output:1"]}])
    return weft.NEXT

app.run(sys.argv[1])
`

// callingScript makes a call that changes something, without a name.
const callingScript = `import sys
import weft

with weft.connect(sys.argv[1]) as controller:
    try:
        controller.call("flowrules.AddFlows", {"flows": [{"dpid": "1", "priority": 5}]})
        print("done")
    except weft.Error as e:
        print(e)
`

// trustOwn has apps attack the entries of the operator and of each other.
func trustOwn(t *testing.T, f *faults) {
	a := &appsTest{t: t, deployment: f.deploy(t, `name: apps
pipeline: [discovery, hosts, first, second, forwarding]
apps:
  first: {absent: skip, timeout: 10s, may: [add_flow, delete_flow, groups]}
  second: {absent: skip, timeout: 10s, may: [add_flow, delete_flow, groups]}
workers:
  southbound: {services: [southbound, discovery, hosts]}
  routing: {services: [paths, forwarding]}
  north: {services: [flowrules, stats, gateway]}
config:
  forwarding: {idle_timeout: 2s}
`)}
	l := a.network("linear:2")
	if out, err := a.command(context.Background(), "flow", "add", "--switch", "1", "--match", "eth_type=0x0800,ip_proto=6,tcp_dst=7001", "--priority", "21000"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	file := a.write("intruder.py", intruderScript)
	entry := func(port int, cookie string) func() bool {
		return func() bool {
			lines, err := l.OfctlDumpFlows(context.Background(), "s1")
			n := 0
			for _, line := range lines {
				if strings.Contains(line, fmt.Sprintf("tp_dst=%d", port)) && strings.Contains(line, "cookie=0x"+cookie) {
					n++
				}
			}
			return err == nil && n == 1 && present(t, l, "s1", fmt.Sprintf("tp_dst=%d", port)) == 1
		}
	}
	groups := func() (n int) {
		m, err := api.NewSouthboundClient(a.conn).ReadGroups(context.Background(), &api.ReadGroupsRequest{Dpid: "1"})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range m.GetGroups() {
			if g.GetId() >= 0xd0000000 {
				n++
			}
		}
		return n
	}

	// The second has 7002 for itself. Then the first attacks both.
	a.python(file, "ws://"+a.address("north"), "second", "7102", "7002")
	a.attached("second", "stage", "ws", "north")
	a.expired(l)
	a.connect(l, 7102, 2*time.Second)
	eventually(t, "the second's own entry", entry(7002, "4150"))
	a.python(file, "ws://"+a.address("routing"), "first", "7101", "7003")
	a.attached("first", "stage", "ws", "routing")
	a.expired(l)
	a.connect(l, 7101, 2*time.Second)
	eventually(t, "the first's own entry", entry(7003, "4150"))
	if !entry(7001, "574505")() || !entry(7002, "4150")() {
		lines, _ := l.OfctlDumpFlows(context.Background(), "s1")
		t.Errorf("entries of the operator or of the other app are gone:\n%s", strings.Join(lines, "\n"))
	}
	if n := groups(); n != 2 {
		t.Errorf("%d groups of apps, want one of each", n)
	}
	a.counted(`reason="not_own"`)

	// Who has no name changes nothing, and is counted.
	said := a.python(a.write("calling.py", callingScript), "http://"+a.address("north"))
	eventually(t, "the call refused", func() bool { return strings.Contains(said.String(), "without the name of an app") })
	a.counted("weft_deploy_app_refused_total")
}
