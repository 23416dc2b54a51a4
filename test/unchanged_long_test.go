//go:build long || soak

package test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"
)

// faultVariable names the only fault of TestUnchanged, as its log does.
const faultVariable = "WEFT_TEST_FAULT"

// TestUnchanged: a restart, a move or a kill of any service changes nothing that was
// right: no flow entry, group, meter, row of a node's Open vSwitch database or line of its
// routing, and no frame of a customer is lost. Twenty rounds, each of a fault that the seed
// chooses; with the build tag soak all faults, one after the other.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	seed := number(t, seedVariable, 20)
	t.Logf("%s=%d", seedVariable, seed)
	f := newCarrierFaults(t, "--set", "nodes.bfd=2s") // beside load a shorter one takes a busy switch for a dead link
	u := &unchanged{carrierFaults: f, labs: []*lab.Lab{f.l, plainRing(f)}}
	u.policies()
	faults := u.faults()
	rng := rand.New(rand.NewPCG(seed, 0))
	rounds := make([]changeless, 20)
	for i := range rounds {
		rounds[i] = faults[rng.IntN(len(faults))]
	}
	if everyChange {
		rounds = faults
	}
	if one := os.Getenv(faultVariable); one != "" {
		rounds = slices.DeleteFunc(faults, func(c changeless) bool { return c.name != one })
	}
	for i, fault := range rounds {
		u.round(i+1, fault)
	}
	f.program.end()
}

// ring is three plain switches beside the carrier's.
const ring = `
name: ring
switches: [{name: s1, dpid: 101}, {name: s2, dpid: 102}, {name: s3, dpid: 103}]
hosts: [{name: h1, switch: s1}, {name: h2, switch: s2}, {name: h3, switch: s3}]
links: [{a: s1, b: s2}, {a: s2, b: s3}, {a: s3, b: s1}]
`

// plainRing brings it up at the carrier's controller.
func plainRing(f *carrierFaults) *lab.Lab {
	f.t.Helper()
	topo, err := topology.Parse("ring", []byte(ring))
	if err != nil {
		f.t.Fatal(err)
	}
	l, err := lab.Up(f.t.Context(), topo, lab.Options{
		Name: fmt.Sprintf("p%d", time.Now().UnixNano()%1e9), Temporary: true, Controllers: []string{"tcp:" + f.openflow}, KeeperCommand: []string{os.Args[0]},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		if err := l.Down(context.Background()); err != nil {
			f.t.Error(err)
		}
	})
	pingAll(f.t, l, false)
	return l
}

// changeless is a fault that is to change nothing.
type changeless struct {
	name string
	do   func()
}

// unchanged is carrierFaults with a second network of plain switches, and what is watched
// of both.
type unchanged struct {
	*carrierFaults
	labs []*lab.Lab
}

// policies has entries of several services in the plain switches.
func (u *unchanged) policies() {
	u.t.Helper()
	for _, args := range [][]string{
		{"firewall", "add", "--id", "closed", "--deny", "--match", "udp_dst=7000"},
		{"qos", "add", "slow", "--protocol", "udp", "--dst-port", "7001", "--rate", "10000"},
		{"flow", "add", "-f", u.write("flows.yaml", "- {dpid: 101, priority: 40000, match: {eth_type: 0x0800, ip_proto: 17, udp_dst: 7002}}\n")},
	} {
		if _, err := u.command(u.t.Context(), args...); err != nil {
			u.t.Fatal(err)
		}
	}
}

// faults returns all there are: each process killed and told to end, all of the controller
// killed or ended and started again, and services moved by weft apply.
func (u *unchanged) faults() (list []changeless) {
	for _, process := range slices.Sorted(maps.Keys(u.pids())) {
		for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
			list = append(list, changeless{fmt.Sprintf("%s %v", process, sig), func() { u.ended(process, sig) }})
		}
	}
	return append(list,
		changeless{"controller killed", func() { u.killed(); u.supervise() }},
		changeless{"controller restarted", func() {
			u.started[len(u.started)-1].Stop()
			u.eventually("the controller gone", func() bool { return len(u.pids()) == 0 })
			u.supervise()
		}},
		changeless{"apply scale", func() { u.applied("scale") }},
		changeless{"apply multi-process policies", func() {
			u.applied(u.write("apart.yaml", "name: apart\ntransport: grpc\nworkers:\n"+
				"  southbound: {services: [southbound]}\n  topology: {services: [heartbeat, discovery, hosts, paths, forwarding]}\n"+
				"  circuits: {services: [l2vpn, tunnels, nodes]}\n  policy: {services: [scp, balancer, router, nat, firewall, qos, tenants, chain]}\n"+
				"  rules: {services: [flowrules, stats, ryu, gateway]}\n"))
		}},
	)
}

// ended sends a signal to a process and waits until another is in its place.
func (u *unchanged) ended(process string, sig syscall.Signal) {
	u.t.Helper()
	pid := u.pids()[process]
	if err := syscall.Kill(pid, sig); err != nil {
		u.t.Fatalf("%s: %v", process, err)
	}
	u.eventually(process+" again", func() bool { now := u.pids()[process]; return now != 0 && now != pid })
}

// applied carries out another plan and then the one before.
func (u *unchanged) applied(plan string) {
	u.t.Helper()
	for _, p := range []string{plan, "split"} {
		if out, err := u.command(u.t.Context(), "apply", p, "--wait", "35s"); err != nil {
			u.t.Fatalf("apply %s: %v: %s", p, err, out)
		}
		u.circuitsUp(standing)
	}
}

// round has a fault while streams flow and all that the controller may write is watched.
func (u *unchanged) round(n int, fault changeless) {
	u.t.Helper()
	u.sessions()
	u.whole()
	var streams []*streaming
	const every = 10 * time.Millisecond
	plain := u.labs[1].Topology().Hosts
	streams = append(streams, lossless(u.t, u.l, "red1", "red2", every), lossless(u.t, u.l, "ip1", "ip2", every),
		lossless(u.t, u.labs[1], plain[0].Name, plain[len(plain)-1].Name, every))
	for _, s := range streams {
		s.flows(50)
	}
	before := u.written()
	done := u.watch()
	var events []string
	tell := exec.CommandContext(u.t.Context(), u.weft, "events", "--server", "http://"+u.north, "--subjects", "southbound,discovery,nodes,tunnels,l2vpn")
	tell.Stdout = &lines{each: func(line string) { events = append(events, line) }} // ends with the gateway
	if err := tell.Start(); err != nil {
		u.t.Fatal(err)
	}
	fault.do()
	u.allUp()
	u.circuitsUp(standing)
	u.sessions()
	for _, s := range streams {
		s.flows(300)
	}
	changes := done()
	_ = tell.Process.Kill()
	_ = tell.Wait() // it was killed
	if after := u.written(); after != before {
		u.t.Errorf("round %d, %s: written before:\n%s\nafter:\n%s", n, fault.name, before, after)
	}
	for _, c := range changes {
		u.t.Errorf("round %d, %s: %s", n, fault.name, c)
	}
	for i, s := range streams {
		if r := s.end(); r.Lost() > 0 {
			u.t.Errorf("round %d, %s: stream %d lost %d of %d, the longest outage %v ms", n, fault.name, i, r.Lost(), r.Sent, r.Outage)
		}
	}
	u.t.Logf("round %d, %s: %d changes", n, fault.name, len(changes))
	if len(changes) > 0 {
		u.t.Log(strings.Join(events, "\n"), u.logs())
	}
}

// figuresOf are what groups and meters have counted, and for how long they have been there.
var figuresOf = regexp.MustCompile(`(packet_count|byte_count|packet_in_count|byte_in_count|duration|flow_count|ref_count)[=:][0-9.s]+,?`)

// rowChanged returns what says of each line of a monitor whether a row is another but for
// the intervals of BFD.
func rowChanged() func(line string) bool {
	was := ""
	return func(line string) bool {
		line = backedOff.ReplaceAllString(line, "")
		fields := strings.SplitN(line, ",", 3)
		if len(fields) < 3 || !slices.Contains([]string{"insert", "delete", "old", "new"}, fields[1]) {
			return false
		}
		sessions := sessionOf.FindString(fields[2])
		switch {
		case fields[1] == "old" && sessions != "" && strings.Trim(strings.Replace(fields[2], sessions, "", 1), ",") == "":
			was = sessions
			return false
		case fields[1] == "new" && was != "" && was == sessions:
			return false
		}
		return true
	}
}

// sessionOf is the column bfd of a row.
var sessionOf = regexp.MustCompile(`"\{bfd_[^}]*\}"`)

// backedOff are the intervals of BFD, which grow when a session was down: not by what the
// controller did, but because the machine was busy.
var backedOff = regexp.MustCompile(`min_[rt]x=""\d+""`)

// written is what no monitor tells of: groups, meters, queues and the configuration of routing.
func (u *unchanged) written() string {
	u.t.Helper()
	var b strings.Builder
	for _, l := range u.labs {
		for _, s := range l.Topology().Switches {
			for _, what := range []string{"dump-groups", "dump-meters"} {
				out, err := l.OfCtl(u.t.Context(), s.Name, what)
				if err != nil {
					u.t.Fatal(err)
				}
				_, out, _ = strings.Cut(out, "\n")
				lines := strings.Split(figuresOf.ReplaceAllString(out, ""), "\n")
				slices.Sort(lines)
				fmt.Fprintln(&b, s.Name, what, strings.Join(lines, "\n"))
			}
		}
	}
	nodes, err := u.l.Nodes(u.t.Context())
	if err != nil {
		u.t.Fatal(err)
	}
	for _, n := range nodes {
		out, err := exec.Command("vtysh", "--vty_socket", n.Routing, "-c", "show running-config").Output()
		if err != nil {
			u.t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", out)
	}
	for _, n := range u.l.Topology().Switches {
		for _, columns := range [][]string{{"QoS", "type", "queues", "other_config"}, {"Queue", "other_config"}} {
			out, err := exec.Command("ovsdb-client", append([]string{"dump", u.database(n.Name), "Open_vSwitch"}, columns...)...).Output()
			if err != nil {
				u.t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s %s\n", n.Name, out)
		}
	}
	return b.String()
}

// watch follows the entries of all switches and the configured columns of all databases.
// The function that it returns ends it and returns the changes.
func (u *unchanged) watch() (stop func() []string) {
	u.t.Helper()
	ctx, cancel := context.WithCancel(u.t.Context())
	dir := u.t.TempDir()
	var mu sync.Mutex // guards changes
	var changes []string
	var all sync.WaitGroup
	follow := func(where string, isChange func(line string) bool, name string, args ...string) {
		c := exec.CommandContext(ctx, name, args...)
		c.Env = append(c.Environ(), "OVS_RUNDIR="+dir)
		out := &lines{each: func(line string) {
			if isChange(line) {
				mu.Lock()
				defer mu.Unlock()
				changes = append(changes, where+": "+strings.TrimSpace(line))
			}
		}}
		c.Stdout, c.Stderr = out, out // ovs-ofctl prints what it is told to the latter
		if err := c.Start(); err != nil {
			u.t.Fatal(err)
		}
		all.Go(func() { _ = c.Wait() }) // it is killed
		u.eventually("monitor of "+where, out.any)
	}
	for _, l := range u.labs {
		for _, s := range l.Topology().Switches {
			bridge, err := l.Bridge(s.Name)
			if err != nil {
				u.t.Fatal(err)
			}
			socket := "unix:" + u.socket(l, bridge, bridge+".mgmt")
			follow(s.Name, func(line string) bool {
				return strings.HasPrefix(line, " event=") && !strings.Contains(line, "reason=idle") // routes of hosts that are silent
			}, "ovs-ofctl", "-O", "OpenFlow13", "monitor", socket, "watch:!initial")
		}
	}
	for _, n := range u.l.Topology().Switches {
		for _, columns := range [][]string{{"Interface", "name,type,options,bfd,ingress_policing_rate"}, {"Port", "name,qos,tag,interfaces"}, {"Bridge", "name,ports,fail_mode,other_config"}} {
			follow(n.Name+" "+columns[0], rowChanged(), "ovsdb-client", append([]string{"--format=csv", "monitor", u.database(n.Name)}, columns...)...)
		}
	}
	return func() []string {
		cancel()
		all.Wait()
		return changes
	}
}

// database is the socket of a node's Open vSwitch database.
func (u *unchanged) database(node string) string {
	u.t.Helper()
	bridge, err := u.l.Bridge(node)
	if err != nil {
		u.t.Fatal(err)
	}
	return "unix:" + filepath.Join(u.l.Dir(), bridge, "db.sock")
}

// socket is the path of a socket of a switch, in the lab's folder or that of its own Open
// vSwitch.
func (u *unchanged) socket(l *lab.Lab, bridge, name string) string {
	u.t.Helper()
	for _, path := range []string{filepath.Join(l.Dir(), bridge, name), filepath.Join(l.Dir(), name)} {
		if matches, _ := filepath.Glob(path); len(matches) > 0 {
			return path
		}
	}
	u.t.Fatalf("no %s of %s", name, bridge)
	return ""
}

// lines hands on each line that is written to it.
type lines struct {
	each func(line string)

	mu   sync.Mutex // guards the following
	rest []byte
	said bool
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said = true
	l.rest = append(l.rest, b...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			return len(b), nil
		}
		l.each(string(line))
		l.rest = rest
	}
}

// any reports whether anything has been written.
func (l *lines) any() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said
}
