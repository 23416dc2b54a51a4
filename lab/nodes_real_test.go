package lab

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/nodes"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/lab/traffic"
)

// carrierLab is six hybrid nodes, three customers with a gateway and two without.
func carrierLab(t *testing.T, more string) *topology.Topology {
	t.Helper()
	topo, err := topology.Parse("carrier", []byte(`
switches:
  - {name: cr1, kind: hybrid}
  - {name: cr2, kind: hybrid}
  - {name: cr3, kind: hybrid}
  - {name: pe1, kind: hybrid}
  - {name: pe2, kind: hybrid}
  - {name: pe3, kind: hybrid}
hosts:
  - {name: ce1, switch: pe1, gateway: true}
  - {name: ce2, switch: pe2, gateway: true}
  - {name: ce3, switch: pe3, gateway: true}
  - {name: cx1, switch: pe1}
  - {name: cx2, switch: pe2}
links:
  - {a: cr1, b: cr2}
  - {a: cr2, b: cr3}
  - {a: cr3, b: cr1}
  - {a: pe1, b: cr1}
  - {a: pe1, b: cr2}
  - {a: pe2, b: cr2}
  - {a: pe2, b: cr3}
  - {a: pe3, b: cr3, delay: 1ms}
control: {mode: in-band, at: cr3}
`+more))
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// awaitNodes waits until the nodes are as they should be.
func awaitNodes(t *testing.T, l *Lab, what string, each func(nodes.NodeStatus) bool) {
	t.Helper()
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(100 * time.Millisecond) {
		all, err := l.Nodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(all, func(n nodes.NodeStatus) bool { return !each(n) }) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not %s: %+v", what, all)
		}
	}
}

func routed(n nodes.NodeStatus) bool {
	return !n.Dark && n.OSPFFull == n.OSPFExpected && n.OSPF6Full == n.OSPFExpected && n.OSPFExpected > 0
}

// awaitPing pings until there is an answer.
func awaitPing(t *testing.T, l *Lab, from, to string, six bool) {
	t.Helper()
	for end := time.Now().Add(testwait.Limit); ; {
		r, err := l.Ping(t.Context(), from, to, traffic.PingOptions{Count: 1, Interval: time.Millisecond, Timeout: 300 * time.Millisecond, IPv6: six})
		if err != nil {
			t.Fatal(err)
		}
		if r.Received > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not reach %s: %s", from, to, r.Error)
		}
	}
}

// killDaemon kills the daemon of a pidfile and returns its number.
func killDaemon(t *testing.T, pidfile string) (pid int) {
	t.Helper()
	text, err := os.ReadFile(pidfile)
	if err != nil {
		t.Fatal(err)
	}
	if pid, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	return pid
}

// TestHybridNodes: nodes route, reach their controller by their own routing only,
// and come back by themselves when their daemons are killed.
func TestHybridNodes(t *testing.T) {
	t.Parallel()
	for _, ovs := range []string{topology.OVSShared, topology.OVSOwn} {
		t.Run(ovs, func(t *testing.T) {
			t.Parallel()
			port := freePort(t)
			startTestController(t, "ptcp:"+port+":127.0.0.1")
			l := upForTest(t, carrierLab(t, "ovs: "+ovs), Options{Controllers: []string{"tcp:127.0.0.1:" + port}, Weft: testprogram.Weft(t)})
			awaitNodes(t, l, "routed", routed)
			for _, six := range []bool{false, true} {
				awaitPing(t, l, "ce1", "ce2", six)
				awaitPing(t, l, "ce3", "ce1", six)
			}
			// A customer without gateway reaches nobody, nor do customers the controller.
			wantPing(t, l, "cx1", "cx2", traffic.PingOptions{Timeout: 50 * time.Millisecond}, 0, 0)
			if out, err := l.Exec(t.Context(), "ce1", "ping", "-c", "1", "-W", "0.2", topology.ControlPrefix().Addr().Next().String()); err == nil {
				t.Errorf("a customer reaches the controllers' machine: %s", out)
			}
			if ovs == topology.OVSShared {
				cut(t, l)
			}
			// Killed, with the entries gone: dark, were it not for weft node run.
			killDaemon(t, filepath.Join(nodes.SwitchesOf(l.state).OVSOf("pe1").Dir, "ovs-vswitchd.pid"))
			killDaemon(t, filepath.Join(nodes.RoutingOf(l.state).RoutingDir(&l.state.Nodes[0]), "ospfd.pid"))
			awaitNodes(t, l, "routed again", routed)
			awaitPing(t, l, "ce1", "ce2", false)
			if ovs == topology.OVSOwn {
				return
			}
			awaitNodes(t, l, "connected again", func(n nodes.NodeStatus) bool { return n.Control == "connected" })
			// Up a second time is refused; the names of the nodes are known in hosts.
			if _, err := Up(t.Context(), carrierLab(t, ""), Options{Name: l.Name(), KeeperCommand: keeperOfTest(t), Weft: testprogram.Weft(t)}); err == nil || !strings.Contains(err.Error(), "is up already") {
				t.Errorf("a second time: %v", err)
			}
			if out, err := l.Exec(t.Context(), "ce2", "ping", "-c", "1", "-W", "2", "cr1"); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

// cut checks what a link that goes down does: the internal ports follow, and the
// session of a node takes another way without being made anew.
func cut(t *testing.T, l *Lab) {
	awaitNodes(t, l, "connected", func(n nodes.NodeStatus) bool { return n.Control == "connected" })
	session := func() string {
		t.Helper()
		out, err := exec.Command("ip", "netns", "exec", machine.HostNetns(l.Name(), "pe2"), "ss", "-Htn", "dst", topology.ControlPrefix().Addr().Next().String()).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(out))[3:5], " ")
	}
	before := session()
	if !strings.HasPrefix(before, "10.255.0.5:") {
		t.Errorf("the session of pe2 is not from its loopback: %s", before)
	}
	if err := l.LinkDown(t.Context(), "pe2", "cr3"); err != nil {
		t.Fatal(err)
	}
	awaitPing(t, l, "ce2", "ce3", false)
	awaitNodes(t, l, "routed the other way", routed)
	if after := session(); after != before {
		t.Errorf("the session of pe2 was %s, and is %s after its link was cut", before, after)
	}
	if err := l.LinkUp(t.Context(), "pe2", "cr3"); err != nil {
		t.Fatal(err)
	}
	awaitNodes(t, l, "routed as before", routed)
}

// TestRoutersAndBridges: nodes in a network of bridges, with a router among them.
func TestRoutersAndBridges(t *testing.T) {
	t.Parallel()
	topo, err := topology.Parse("segment", []byte(`
controller: none
switches:
  - {name: pe1, kind: hybrid}
  - {name: r1, kind: router}
  - {name: r2, kind: router}
  - {name: b1, kind: bridge}
  - {name: b2, kind: bridge}
hosts:
  - {name: ce1, switch: pe1, gateway: true}
  - {name: ce2, switch: r2, gateway: true}
links:
  - {a: pe1, b: b1}
  - {a: b1, b: b2, delay: 1ms}
  - {a: r1, b: b2}
  - {a: r1, b: r2, delay: 1ms}
routing: {ipv4_only: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	l := upForTest(t, topo, Options{Weft: testprogram.Weft(t)})
	awaitNodes(t, l, "routed", func(n nodes.NodeStatus) bool { return n.OSPFFull == n.OSPFExpected && !n.Dark && n.Control == "none" })
	awaitPing(t, l, "ce1", "ce2", false)
	if err := l.LinkDown(context.Background(), "r1", "r2"); err != nil {
		t.Fatal(err)
	}
	if err := l.LinkUp(context.Background(), "r1", "r2"); err != nil {
		t.Fatal(err)
	}
	awaitPing(t, l, "ce2", "ce1", false)
}
