package test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/deploy/plans"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/nodes"

	"github.com/weft-sdn/weft/lab/topology"
)

// carrierSquare is two provider edges with two ways between them, and hosts of
// six customers: ip is routed, lan has a circuit with three ends, the others have
// such with two, ring two of them.
const carrierSquare = `
name: square
switches:
  - {name: pe1, kind: hybrid}
  - {name: pe2, kind: hybrid}
  - {name: cr1, kind: hybrid}
  - {name: cr2, kind: hybrid}
hosts:
  - {name: ip1, switch: pe1, gateway: true}
  - {name: ip2, switch: pe2, gateway: true}
  - {name: red1, switch: pe1}
  - {name: red2, switch: pe2}
  - {name: blue1, switch: pe1}
  - {name: blue2, switch: pe2}
  - {name: green1, switch: pe1}
  - {name: green2, switch: pe2}
  - {name: lan1, switch: pe1}
  - {name: lan2, switch: pe2}
  - {name: lan3, switch: cr2}
  - {name: ring1, switch: pe1}
  - {name: ring2, switch: pe2}
  - {name: ring3, switch: pe1}
  - {name: ring4, switch: pe2}
links:
  - {a: pe1, b: cr1}
  - {a: pe1, b: cr2}
  - {a: pe2, b: cr1}
  - {a: pe2, b: cr2}
  - {a: cr1, b: cr2}
routing: {ipv4_only: true}
control: {mode: in-band, at: cr1}
ovs: own
`

// carrierFaults is that network under the plan split, with what its customers hear.
type carrierFaults struct {
	*deployment
	t       *testing.T
	l       *lab.Lab
	program *streaming // of the routed customer
	wires   map[string]*wire

	mu    sync.Mutex     // guards the following
	heard map[string]int // frames by the host that heard them and their mark
	casts int            // frames of lan that may come to a host once
	wrong []string       // what has come to whom it should not
}

// TestCircuitsUnderFaults: circuits of four customers, and the routing beside
// them, under kills of what keeps them; they carry on or return by themselves,
// and no frame comes to another customer.
func TestCircuitsUnderFaults(t *testing.T) {
	t.Parallel()
	f := newCarrierFaults(t)
	f.frames()
	f.ends()
	f.operations()
	f.known()
	f.joins()
	f.rings()
	f.moved()
	f.optimised()
	f.isolated()
	f.paused()
	f.nodesKilled()
	f.daemonKilled("pe1", "ovs-vswitchd.pid")
	f.workerKilled()
	f.changeKilled()
	f.more()
	f.end()
}

func newCarrierFaults(t *testing.T, flags ...string) *carrierFaults {
	t.Helper()
	f := carrierUp(t, carrierSquare, flags...)
	for _, h := range f.l.Topology().Hosts {
		w := attach(t, f.l, h.Name)
		f.wires[h.Name] = w
		w.listen(func(frame []byte) { f.hear(h.Name, frame) })
	}
	if _, err := f.command(t.Context(), "l2vpn", "apply", f.file("none.yaml", 0, lans...)); err != nil {
		t.Fatal(err)
	}
	f.circuitsUp(standing)
	f.carried()
	f.program = endless(t, f.l, "ip1", "ip2", 50*time.Millisecond)
	f.program.flows(5)
	return f
}

// carrierUp brings a network up under the plan split, with flags of weft up, and waits until all of it is
// known.
func carrierUp(t *testing.T, network string, flags ...string) *carrierFaults {
	t.Helper()
	text, err := plans.Read("split")
	if err != nil {
		t.Fatal(err)
	}
	f := &carrierFaults{t: t, deployment: newFaults(t).deploy(t, string(text), flags...), wires: map[string]*wire{}, heard: map[string]int{}}
	topo, err := topology.Parse("carrier", []byte(network))
	if err != nil {
		t.Fatal(err)
	}
	f.l, err = lab.Up(t.Context(), topo, lab.Options{
		Name: fmt.Sprintf("t%d", time.Now().UnixNano()%1e9), Temporary: true, Controllers: []string{"tcp:" + f.openflow}, Weft: f.weft,
		KeeperCommand: []string{"env", "WEFT_SERVER=http://" + f.north, os.Args[0]},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.l.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	f.routed()
	f.eventually("all links and nodes known", func() bool {
		var links struct{ Links []struct{ State string } }
		f.json(&links, "get", "links")
		up := 0
		for _, k := range links.Links {
			if k.State == "up" {
				up++
			}
		}
		return up == 2*len(topo.Links)
	})
	return f
}

func (f *carrierFaults) eventually(what string, is func() bool) {
	f.t.Helper()
	eventually(f.t, what, is)
}

// standing is how many circuits file always writes.
const standing = 3

// file writes a file of the circuits red and blue, so many of green, and lan with some hosts.
func (f *carrierFaults) file(name string, green int, lan ...string) string {
	f.t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "circuits:\n  - {name: red, protect: true, rate_kbps: 20000, ends: [%q, %q]}\n", f.at("red1"), f.at("red2"))
	fmt.Fprintf(&text, "  - {name: blue, ends: [%q, %q]}\n", f.at("blue1")+".100", f.at("blue2")+".200")
	text.WriteString(f.lan(lan...))
	for i := range green {
		fmt.Fprintf(&text, "  - {name: green%d, ends: [\"%s.%d\", \"%s.%d\"]}\n", i, f.at("green1"), i+1, f.at("green2"), i+1)
	}
	return f.write(name, text.String())
}

// json reads what a command says, nothing if it fails.
func (f *carrierFaults) json(v any, args ...string) {
	out, err := f.command(f.t.Context(), append(args, "-o", "json")...)
	if err == nil {
		err = json.Unmarshal(out, v)
	}
	if err != nil {
		f.t.Log(err)
	}
}

// at is the port of a host as circuits have it.
func (f *carrierFaults) at(host string) string {
	h := lookup(f.t, f.l, host)
	return fmt.Sprintf("%s:%d", dpid(f.t, f.l, h.Switch), h.Port)
}

// circuits returns the states of those that there are, by name.
func (f *carrierFaults) circuits() map[string]string {
	var list struct {
		Circuits []struct{ Name, State, Reason string }
	}
	f.json(&list, "l2vpn", "list")
	states := map[string]string{}
	for _, c := range list.Circuits {
		states[c.Name] = c.State + " " + c.Reason
	}
	return states
}

// circuitsUp waits until there are so many circuits, and all are up.
func (f *carrierFaults) circuitsUp(n int) {
	f.t.Helper()
	var last map[string]string
	defer func() {
		if f.t.Failed() {
			f.t.Log(last)
		}
	}()
	f.eventually("circuits up", func() bool {
		last = f.circuits()
		return len(last) == n && !slices.ContainsFunc(slices.Collect(maps.Values(last)), func(s string) bool { return s != "up " })
	})
}

// routed waits until all nodes have their neighbours and their sessions.
func (f *carrierFaults) routed() {
	f.t.Helper()
	f.eventually("nodes routed and connected", func() bool {
		all, err := f.l.Nodes(f.t.Context())
		return err == nil && !slices.ContainsFunc(all, func(n nodes.NodeStatus) bool {
			return n.Dark || n.OSPFFull != n.OSPFExpected || n.OSPFExpected == 0 || n.Control != "connected"
		})
	})
}

// customer is whose a host is: its name without the number.
func customer(host string) string { return strings.TrimRight(host, "0123456789") }

// mark begins the payload of a frame of the test's, and a space ends it.
const mark = "weft-test:"

// hear notes a frame that a host has heard.
func (f *carrierFaults) hear(host string, frame []byte) {
	_, text, marked := bytes.Cut(frame, []byte(mark))
	if !marked {
		return
	}
	what, _, _ := strings.Cut(string(text), " ")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard[host+" "+what]++
	sender, kind, _ := strings.Cut(what, "/")
	switch {
	case customer(sender) != customer(host) || sender == host:
		f.wrong = append(f.wrong, fmt.Sprintf("%s heard %s", host, what))
	case strings.HasPrefix(kind, once) && f.heard[host+" "+what] > 1:
		f.wrong = append(f.wrong, fmt.Sprintf("%s heard %s twice", host, what))
	}
}

// got is how often a host has heard what another sent.
func (f *carrierFaults) got(host, from, kind string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.heard[host+" "+from+"/"+kind]
}

// frame is one of a host's, of an Ethertype, with headers before its mark.
func (f *carrierFaults) frame(from, kind, to string, vlan uint16, ethertype uint16, headers ...byte) []byte {
	f.t.Helper()
	var dst [6]byte
	if _, err := fmt.Sscanf(to, "%x:%x:%x:%x:%x:%x", &dst[0], &dst[1], &dst[2], &dst[3], &dst[4], &dst[5]); err != nil {
		f.t.Fatal(err)
	}
	src := mac(f.t, f.l, from)
	b := append(dst[:], src[:]...)
	if vlan != 0 {
		b = binary.BigEndian.AppendUint16(append(b, 0x81, 0), vlan)
	}
	b = append(binary.BigEndian.AppendUint16(b, ethertype), headers...)
	b = append(b, mark+from+"/"+kind+" "...)
	return append(b, make([]byte, 64)...)
}

const everyone = "ff:ff:ff:ff:ff:ff"

// passes sends a frame until the other end has heard it.
func (f *carrierFaults) passes(from, to, kind string, frame []byte) {
	f.t.Helper()
	before := f.got(to, from, kind)
	f.eventually(kind+" of "+from+" at "+to, func() bool {
		f.wires[from].send(frame)
		return f.got(to, from, kind) > before
	})
}

// carried waits until red, blue and lan carry frames all ways.
func (f *carrierFaults) carried() {
	f.t.Helper()
	f.passes("red1", "red2", "data", f.frame("red1", "data", everyone, 0, 0x88b5))
	f.passes("red2", "red1", "data", f.frame("red2", "data", everyone, 0, 0x88b5))
	f.passes("blue1", "blue2", "data", f.frame("blue1", "data", everyone, 100, 0x88b5))
	f.passes("blue2", "blue1", "data", f.frame("blue2", "data", everyone, 200, 0x88b5))
	f.cast("lan1", "lan2", "lan3")
	f.cast("lan2", "lan1", "lan3")
	f.cast("lan3", "lan1", "lan2")
}

// whole waits until everything is as it was before a fault.
func (f *carrierFaults) whole() {
	f.t.Helper()
	f.routed()
	f.circuitsUp(standing)
	f.carried()
	f.program.flows(5)
}

// ipv4 is the header of a packet to a group, of a protocol, with more behind it.
func ipv4(protocol byte, to [4]byte, payload ...byte) []byte {
	b := []byte{0x45, 0, 0, 200, 0, 1, 0, 0, 1, protocol, 0, 0, 10, 9, 9, 9, to[0], to[1], to[2], to[3]}
	sum := uint32(0)
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum+sum>>16))
	return append(b, payload...)
}

// frames: what a customer may send that means something to the provider. A
// circuit carries it, but for labels; the node's routing and bridge do not mind.
func (f *carrierFaults) frames() {
	f.t.Helper()
	before := f.daemon("pe1", "ovs-vswitchd.pid")
	bfd := ipv4(17, [4]byte{10, 9, 9, 8}, 0xc0, 0, 0x0e, 0xc8, 0, 180, 0, 0)
	for kind, frame := range map[string][]byte{
		"ospf": f.frame("red1", "ospf", "01:00:5e:00:00:05", 0, 0x0800, ipv4(89, [4]byte{224, 0, 0, 5}, 2, 1, 0, 44)...),
		"bfd":  f.frame("red1", "bfd", mac(f.t, f.l, "red2").String(), 0, 0x0800, bfd...),
		"lldp": f.frame("red1", "lldp", "01:80:c2:00:00:0e", 0, 0x88cc, 2, 7, 4, 1, 2, 3, 4, 5, 6),
	} {
		f.passes("red1", "red2", kind, frame)
	}
	// Every label that a circuit could have, from customers of all kinds.
	for _, from := range []string{"red1", "blue1", "green1", "ip1", "lan1"} {
		for _, ethertype := range []uint16{0x8847, 0x8848} {
			for _, first := range []uint32{16, 200000} {
				for label := first; label < first+20; label++ {
					f.wires[from].send(f.frame(from, "label", everyone, 0, ethertype, byte(label>>12), byte(label>>4), byte(label<<4)|1, 64))
				}
			}
		}
		f.wires[from].send(f.frame(from, "stray", everyone, 7, 0x88b5)) // of a VLAN that only red's and lan's ports have, with all others
	}
	f.carried()
	for _, to := range []string{"red2", "blue2", "green2", "ip2", "lan2"} {
		from := customer(to) + "1"
		if n := f.got(to, from, "label"); n > 0 {
			f.t.Errorf("%s heard %d labelled frames of %s", to, n, from)
		}
		if n := f.got(to, from, "stray"); n > 0 && from != "red1" && from != "lan1" {
			f.t.Errorf("%s heard a frame of VLAN 7, of which there is no circuit", to)
		}
	}
	if after := f.daemon("pe1", "ovs-vswitchd.pid"); after != before {
		f.t.Errorf("Open vSwitch of pe1 ended by a customer's frames")
	}
}

// daemon is the process of a node's daemon, 0 if there is none.
func (f *carrierFaults) daemon(node, pidfile string) (pid int) {
	f.t.Helper()
	bridge, err := f.l.Bridge(node)
	if err != nil {
		f.t.Fatal(err)
	}
	_ = filepath.WalkDir(f.l.Dir(), func(path string, _ fs.DirEntry, _ error) error { // one that has just gone is not there
		dir := filepath.Base(filepath.Dir(path))
		if filepath.Base(path) == pidfile && (dir == node || dir == bridge) {
			text, _ := os.ReadFile(path)
			pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return nil
	})
	return pid
}

// daemonKilled kills a daemon of a node, and waits until all is as before.
func (f *carrierFaults) daemonKilled(node, pidfile string) {
	f.t.Helper()
	pid := f.daemon(node, pidfile)
	if pid == 0 {
		f.t.Fatalf("no %s of %s", pidfile, node)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		f.t.Fatal(err)
	}
	f.eventually(pidfile+" of "+node+" again", func() bool { now := f.daemon(node, pidfile); return now != 0 && now != pid })
	f.whole()
}

// workerKilled kills the worker with l2vpn.
func (f *carrierFaults) workerKilled() {
	f.t.Helper()
	pid := f.pids()["hosts"]
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		f.t.Fatal(err)
	}
	f.carried() // whether it is back or not
	f.eventually("the worker of l2vpn again", func() bool { now := f.pids()["hosts"]; return now != 0 && now != pid })
	f.whole()
}

// changeKilled kills all of the controller while it carries out a change of
// fifty circuits, and starts it again.
func (f *carrierFaults) changeKilled() {
	f.t.Helper()
	apply := []string{"l2vpn", "apply", f.file("fifty.yaml", 50, lans...)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := f.command(context.Background(), apply...)
		f.t.Logf("the change ended: %v", err)
	}()
	f.eventually("the change begun", func() bool {
		select {
		case <-done:
			return true
		default:
			return len(f.circuits()) > standing
		}
	})
	core, edge := f.secondLink("blue")
	f.killed()
	<-done
	f.carried() // without a controller
	f.bypassed(core, edge)
	f.supervise()
	f.allUp()
	var there map[string]string
	f.eventually("the circuits read", func() bool { there = f.circuits(); return len(there) >= standing })
	f.t.Logf("%d circuits of the change were there", len(there)-standing)
	f.circuitsUp(len(there))
	f.carried()
	f.eventually("the change made again", func() bool { _, err := f.command(f.t.Context(), apply...); return err == nil })
	f.circuitsUp(standing + 50)
	f.passes("green1", "green2", "data", f.frame("green1", "data", everyone, 50, 0x88b5))
	if _, err := f.command(f.t.Context(), "l2vpn", "apply", f.file("none.yaml", 0, lans...)); err != nil {
		f.t.Fatal(err)
	}
	f.whole()
}

// killed kills the controller's processes, the supervisor first.
func (f *carrierFaults) killed() {
	f.t.Helper()
	supervisor := f.started[len(f.started)-1].PID()
	for _, pid := range append([]int{supervisor}, slices.Collect(maps.Values(f.pids()))...) {
		_ = syscall.Kill(pid, syscall.SIGKILL) // a worker may have ended with its supervisor
	}
	f.eventually("the controller gone", func() bool { return len(f.pids()) == 0 })
}

// end checks what has come to whom, and for how long the routed customer had to wait.
func (f *carrierFaults) end() {
	f.t.Helper()
	r := f.program.end()
	f.t.Logf("the routed customer: %d of %d lost, the longest outage %v ms", r.Lost(), r.Sent, r.Outage)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range slices.Compact(f.wrong) {
		f.t.Error(w)
	}
}
