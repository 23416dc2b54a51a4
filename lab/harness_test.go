package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab/keeper"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/lab/traffic"
)

// Tests that bring real labs up need root, Open vSwitch,
// nftables, iperf3 and ovs-testcontroller, and fail without them.

func TestMain(m *testing.M) {
	keeper.RunIfAsked()
	code := m.Run()
	testprogram.Remove()
	os.Exit(code)
}

// labsMade numbers the labs of upForTest: subtests of several tests share a name.
var labsMade atomic.Int32

// upForTest brings a lab up under a name of its own and takes it down at the
// end of the test, which must leave nothing.
func upForTest(t testing.TB, topo *topology.Topology, opt Options) *Lab {
	t.Helper()
	opt.Name = fmt.Sprintf("t%d-%d-%s", os.Getpid(), labsMade.Add(1), topology.LabName(filepath.Base(t.Name())))
	opt.Name = opt.Name[:min(len(opt.Name), 32)]
	opt.KeeperCommand = keeperOfTest(t)
	opt.Temporary = true
	t.Cleanup(func() {
		if t.Failed() {
			for _, log := range []string{"keeper.log", "ovs-vswitchd.log"} {
				if b, err := os.ReadFile(filepath.Join(machine.Dir(opt.Name), log)); err == nil {
					t.Logf("%s:\n%s", log, b[max(0, len(b)-2000):])
				}
			}
		}
		if err := Down(context.Background(), opt.Name); err != nil {
			t.Error(err)
		}
		wantNothing(t, opt.Name)
	})
	l, err := Up(t.Context(), topo, opt)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func keeperOfTest(t testing.TB) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{exe}
}

// wantNothing checks that a lab has left neither processes nor namespaces nor
// files nor interfaces.
func wantNothing(t testing.TB, name string) {
	t.Helper()
	if ns := machine.LabNetns(name); len(ns) > 0 {
		t.Errorf("namespaces left: %v", ns)
	}
	if _, err := os.Stat(machine.Dir(name)); err == nil {
		t.Errorf("%s is left", machine.Dir(name))
	}
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(10 * time.Millisecond) { // with a namespace that lost its name, later
		links, err := machine.ListWhole(netlink.LinkList)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(links, func(l netlink.Link) bool { return strings.HasSuffix(l.Attrs().Alias, "of weft lab "+name) })
		if i < 0 {
			break
		}
		if time.Now().After(end) {
			t.Errorf("interface left: %s", links[i].Attrs().Name)
			break
		}
	}
	if p := processLeft(t, name); p != "" {
		t.Errorf("process left: %s", p)
	}
}

// processLeft is the command line of a process that names a lab; empty: there is none.
func processLeft(t testing.TB, name string) string {
	t.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		if b, err := os.ReadFile(p); err == nil && strings.Contains(string(b), name) {
			return strings.ReplaceAll(string(b), "\x00", " ")
		}
	}
	return ""
}

// standalone makes every switch a learning switch without a controller.
func standalone(t *topology.Topology) *topology.Topology {
	for i := range t.Switches {
		t.Switches[i].FailMode = topology.FailStandalone
	}
	t.Controllers = []string{topology.ControllerNone}
	return t
}

// normal has every switch forward like a learning switch, by a flow entry.
func normal(t testing.TB, l *Lab) {
	t.Helper()
	for _, s := range l.Topology().Switches {
		if _, err := l.OfCtl(t.Context(), s.Name, "add-flow", "priority=1,actions=NORMAL"); err != nil {
			t.Fatal(err)
		}
	}
}

func linear(t testing.TB, n, hosts int) *topology.Topology {
	t.Helper()
	topo, err := topology.Linear(n, hosts)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// neighbourPatience is for how long answers are waited for that are to come: what
// resolves the neighbour may be sent before a busy switch has the port, and is sent
// anew only after a second.
const neighbourPatience = testwait.Limit

// wantPing pings and checks how many answers come.
func wantPing(t testing.TB, l *Lab, from, to string, opt traffic.PingOptions, least, most int) traffic.PingResult {
	t.Helper()
	if opt.Interval == 0 {
		opt.Interval = 10 * time.Millisecond
	}
	if opt.Timeout == 0 {
		opt.Timeout = neighbourPatience
	}
	r, err := l.Ping(t.Context(), from, to, opt)
	if err != nil {
		t.Fatal(err)
	}
	if r.Received < least || r.Received > most {
		t.Errorf("%s to %s: %d answers of %d, want %d to %d (%s)", from, to, r.Received, r.Sent, least, most, r.Error)
	}
	return r
}

// wantRTT pings until the least round trip is what it must be, for on a busy
// machine any one may take long; it must never be less.
func wantRTT(t testing.TB, l *Lab, from, to string, least, most float64) {
	t.Helper()
	var r traffic.PingResult
	for end := time.Now().Add(testwait.Limit); time.Now().Before(end); {
		var err error
		r, err = l.Ping(t.Context(), from, to, traffic.PingOptions{Count: 20, Interval: 10 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if r.Received > 0 && r.Min < most {
			break
		}
	}
	if r.Received == 0 || r.Min < least || r.Min > most {
		t.Errorf("%s to %s: %d answers, the least round trip is %v ms, want %v to %v", from, to, r.Received, r.Min, least, most)
	}
}
