package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The tests of this file bring real labs up: they need root, Open vSwitch,
// nftables, iperf3 and ovs-testcontroller, and fail without.

func TestMain(m *testing.M) {
	RunKeeperIfAsked()
	os.Exit(m.Run())
}

// upForTest brings a lab up under a name of its own and takes it down at the
// end of the test, which must leave nothing.
func upForTest(t testing.TB, topo *Topology, opt Options) *Lab {
	t.Helper()
	opt.Name = fmt.Sprintf("t%d-%s", os.Getpid(), nameFrom(filepath.Base(t.Name())))
	opt.Name = opt.Name[:min(len(opt.Name), 32)]
	opt.KeeperCommand = keeperOfTest(t)
	t.Cleanup(func() {
		if t.Failed() {
			for _, log := range []string{"keeper.log", "ovs-vswitchd.log"} {
				if b, err := os.ReadFile(filepath.Join(dirOf(opt.Name), log)); err == nil {
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

// wantNothing checks that a lab has left neither processes nor namespaces nor files.
func wantNothing(t testing.TB, name string) {
	t.Helper()
	if ns := labNetns(name); len(ns) > 0 {
		t.Errorf("namespaces left: %v", ns)
	}
	if _, err := os.Stat(dirOf(name)); err == nil {
		t.Errorf("%s is left", dirOf(name))
	}
	procs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		if b, err := os.ReadFile(p); err == nil && strings.Contains(string(b), name) {
			t.Errorf("process left: %s", strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
}

// standalone makes every switch a learning switch without a controller.
func standalone(t *Topology) *Topology {
	for i := range t.Switches {
		t.Switches[i].FailMode = FailStandalone
	}
	t.Controllers = []string{ControllerNone}
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

func linear(t testing.TB, n, hosts int) *Topology {
	t.Helper()
	topo, err := Linear(n, hosts)
	if err != nil {
		t.Fatal(err)
	}
	return topo
}

// wantPing pings and checks how many answers come.
func wantPing(t testing.TB, l *Lab, from, to string, opt PingOptions, least, most int) PingResult {
	t.Helper()
	if opt.Interval == 0 {
		opt.Interval = 10 * time.Millisecond
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

func TestLabsSideBySide(t *testing.T) {
	for _, name := range []string{"one", "two", "three"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := upForTest(t, standalone(linear(t, 3, 1)), Options{})
			for _, v6 := range []bool{false, true} {
				results, err := l.PingAll(t.Context(), l.AllPairs(v6), PingOptions{IPv6: v6, Interval: 10 * time.Millisecond})
				if err != nil {
					t.Fatal(err)
				}
				if len(results) != 6 || AnyLost(results) {
					t.Errorf("%+v", results)
				}
			}
			if out, err := l.Exec(t.Context(), "h2", "cat", "/proc/net/dev"); err != nil || !strings.Contains(out, "eth0") {
				t.Errorf("%s, %v", out, err)
			}
			if _, err := l.Exec(t.Context(), "h2", "false"); err == nil {
				t.Error("a failing command is no error")
			}
			found := false
			labs, err := List()
			for _, s := range labs {
				found = found || s.Name == l.Name() && s.State == "up" && s.Switches == 3 && s.Hosts == 3 && s.Links == 2
			}
			if err != nil || !found {
				t.Errorf("List: %+v, %v", labs, err)
			}
		})
	}
}

func TestUpRefusesANameInUse(t *testing.T) {
	l := upForTest(t, standalone(linear(t, 1, 2)), Options{})
	_, err := Up(t.Context(), linear(t, 1, 1), Options{Name: l.Name(), KeeperCommand: keeperOfTest(t)})
	if err == nil || !strings.Contains(err.Error(), "is up already") {
		t.Fatalf("got %v", err)
	}
	wantPing(t, l, "h1", "h2", PingOptions{}, 3, 3)
}

func TestSwitchesAreWhatTheTopologySays(t *testing.T) {
	topo := &Topology{
		Controllers: []string{ControllerNone},
		Switches:    []Switch{{Name: "a-switch-with-a-long-name", DPID: 0xabcdef, Protocols: []string{"OpenFlow13"}}, {Name: "s2"}},
		Hosts:       []Host{{Name: "h1", Switch: "s2", Port: 77}},
		Links:       []Link{{A: "a-switch-with-a-long-name", B: "s2", APort: 5}},
		Name:        "x",
	}
	l := upForTest(t, topo, Options{})
	show, err := l.OfCtl(t.Context(), "a-switch-with-a-long-name", "show")
	if err != nil || !strings.Contains(show, "dpid:0000000000abcdef") || !strings.Contains(show, "OF1.3") {
		t.Errorf("%s, %v", show, err)
	}
	ports, err := l.OfCtl(t.Context(), "s2", "dump-ports-desc")
	if err != nil || !strings.Contains(ports, " 77(s2-eth77): addr:06:00:00:02:00:4d") {
		t.Errorf("%s, %v", ports, err)
	}
	if d, err := l.SwitchDPID("s2"); d != 2 || err != nil {
		t.Errorf("dpid of s2: %v, %v", d, err)
	}
	if flows, err := l.OfctlDumpFlows(t.Context(), "s2"); err != nil || len(flows) != 0 {
		t.Errorf("a secure switch begins with flows %q, %v", flows, err)
	}
	normal(t, l)
	if flows, err := l.OfctlDumpFlows(t.Context(), "s2"); err != nil || len(flows) != 1 || !strings.Contains(flows[0], "actions=NORMAL") {
		t.Errorf("flows %q, %v", flows, err)
	}
	if out, err := l.AppCtl(t.Context(), "fdb/show", "s2"); err != nil || !strings.Contains(out, "VLAN") {
		t.Errorf("%s, %v", out, err)
	}
}

func TestLinkStates(t *testing.T) {
	topo := linear(t, 2, 1)
	topo.Controllers = []string{ControllerNone}
	topo.Links = append(topo.Links, Link{A: "s1", B: "s2", Shape: Shape{Delay: Delay(time.Millisecond)}})
	l := upForTest(t, topo, Options{})
	flow := func(sw, flow string) {
		t.Helper()
		if _, err := l.OfCtl(t.Context(), sw, "add-flow", flow); err != nil {
			t.Fatal(err)
		}
	}
	ports := func(sw string) string {
		t.Helper()
		out, err := l.OfCtl(t.Context(), sw, "dump-ports-desc")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	// The first link (port 2) is a veth pair, the second (port 3) a cable.
	for _, port := range []string{"2", "3"} {
		a, b := "s1:"+port, "s2:"+port
		for _, sw := range []string{"s1", "s2"} {
			flow(sw, "in_port=1,actions=output:"+port)
			flow(sw, "in_port="+port+",actions=output:1")
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		state := func(sw string, down bool) {
			t.Helper()
			for try := 0; ; try++ {
				_, after, _ := strings.Cut(ports(sw), " "+port+"(")
				after, _, _ = strings.Cut(after, "speed")
				if strings.Contains(after, "LINK_DOWN") == down {
					return
				}
				if try == 20 {
					t.Fatalf("port %s of %s: want down %v, is\n%s", port, sw, down, after)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		wantPing(t, l, "h1", "h2", PingOptions{}, 3, 3)

		must(l.LinkDown(t.Context(), a, b))
		state("s1", true)
		state("s2", true)
		wantPing(t, l, "h1", "h2", PingOptions{Timeout: 50 * time.Millisecond}, 0, 0)
		must(l.LinkDown(t.Context(), a, b)) // again: no change

		must(l.LinkUp(t.Context(), b, a))
		state("s1", false)
		state("s2", false)
		wantPing(t, l, "h1", "h2", PingOptions{}, 3, 3)

		must(l.LinkSilent(t.Context(), a, b))
		wantPing(t, l, "h1", "h2", PingOptions{Timeout: 50 * time.Millisecond}, 0, 0)
		state("s1", false)
		state("s2", false)

		must(l.LinkDown(t.Context(), a, b)) // from silent
		state("s1", true)
		must(l.LinkUp(t.Context(), a, b))
		wantPing(t, l, "h1", "h2", PingOptions{}, 3, 3)
	}
	// A host's link: the switch sees it, and the host keeps its addresses.
	if err := l.LinkDown(t.Context(), "h1", "s1"); err != nil {
		t.Fatal(err)
	}
	wantPing(t, l, "h2", "h1", PingOptions{Timeout: 50 * time.Millisecond}, 0, 0)
	if err := l.LinkUp(t.Context(), "s1", "h1"); err != nil {
		t.Fatal(err)
	}
	wantPing(t, l, "h2", "h1", PingOptions{IPv6: true}, 3, 3)
	wantPing(t, l, "h2", "h1", PingOptions{}, 3, 3)

	for _, c := range [][3]string{
		{"s1", "s2", "2 links join s1 and s2: name one by its ports; allowed: s1:2 s2:2, s1:3 s2:3"},
		{"h1", "h2", "no link joins h1 and h2; h1 is linked to s1:1"},
		{"s9", "s1", "has no switch or host \"s9\""},
	} {
		if err := l.LinkDown(t.Context(), c[0], c[1]); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("got  %v\nwant %s", err, c[2])
		}
	}
}

func TestShapes(t *testing.T) {
	topo := standalone(linear(t, 3, 1))
	topo.Links[0].Shape = Shape{Delay: Delay(10 * time.Millisecond), Rate: 20e6}
	topo.Links[1].Shape = Shape{Loss: 20}
	l := upForTest(t, topo, Options{})

	r := wantPing(t, l, "h1", "h2", PingOptions{Count: 20}, 20, 20)
	if r.Min < 20 || r.Min > 23 {
		t.Errorf("over a link of 10 ms the least round trip is %v ms", r.Min)
	}
	// Lost one way or the other: 36 %.
	r = wantPing(t, l, "h2", "h3", PingOptions{Count: 500, Interval: 2 * time.Millisecond, Timeout: 100 * time.Millisecond}, 260, 380)
	if r.Error != "" {
		t.Errorf("loss shows as an error of the sender: %s", r.Error)
	}
	p, err := l.Iperf(t.Context(), "h1", "h2", IperfOptions{Duration: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if p.Mbit < 10 || p.Mbit > 21 {
		t.Errorf("over a link of 20 Mbit/s TCP reaches %.1f Mbit/s", p.Mbit)
	}

	// Changed while up; delay turns a veth pair into a cable.
	none, loss, delay := Rate(0), Percent(0), Delay(2*time.Millisecond)
	if err := l.ShapeLink(t.Context(), "s2", "s3", Change{Loss: &loss, Delay: &delay}); err != nil {
		t.Fatal(err)
	}
	if err := l.ShapeLink(t.Context(), "s1", "s2", Change{Rate: &none}); err != nil {
		t.Fatal(err)
	}
	if err := l.ShapeLink(t.Context(), "s3", "h3", Change{Delay: &delay}); err != nil {
		t.Fatal(err)
	}
	r = wantPing(t, l, "h1", "h3", PingOptions{Count: 20, Timeout: 2 * time.Second}, 19, 20)
	if r.Min < 28 || r.Min > 33 {
		t.Errorf("over links of 10, 2 and 2 ms the least round trip is %v ms", r.Min)
	}
	p, err = l.Iperf(t.Context(), "h1", "h2", IperfOptions{Duration: time.Second, UDP: 50e6})
	if err != nil {
		t.Fatal(err)
	}
	if p.Mbit < 30 {
		t.Errorf("with the rate lifted UDP of 50 Mbit/s arrives at %.1f Mbit/s", p.Mbit)
	}
	links, err := l.Links()
	if err != nil || links[4].Made != "cable" || links[4].Delay != delay || links[3].Rate != 0 {
		t.Errorf("links %+v, %v", links, err)
	}
}

func TestVLANHosts(t *testing.T) {
	topo := linear(t, 1, 4)
	topo.Controllers = []string{ControllerNone}
	topo.Hosts[0].VLAN, topo.Hosts[1].VLAN, topo.Hosts[2].VLAN = 7, 7, 8
	l := upForTest(t, topo, Options{})
	if _, err := l.OfCtl(t.Context(), "s1", "add-flow", "dl_vlan=7,actions=flood"); err != nil {
		t.Fatal(err)
	}
	wantPing(t, l, "h1", "h2", PingOptions{}, 3, 3)
	wantPing(t, l, "h1", "h2", PingOptions{IPv6: true}, 3, 3)
	wantPing(t, l, "h1", "h3", PingOptions{Timeout: 50 * time.Millisecond}, 0, 0)
	flows, err := l.OfctlDumpFlows(t.Context(), "s1")
	if err != nil || len(flows) != 1 || strings.Contains(flows[0], "n_packets=0") {
		t.Errorf("no frame was tagged: %q, %v", flows, err)
	}
}

// startTestController runs the controller that comes with Open vSwitch.
func startTestController(t testing.TB, method string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("ovs-testcontroller", "--unixctl="+filepath.Join(t.TempDir(), "ctl"), method)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// wantAllPing waits until every pair answers, as a controller needs time to
// hear of its switches.
func wantAllPing(t testing.TB, l *Lab, within time.Duration) {
	t.Helper()
	var results []PingResult
	for end := time.Now().Add(within); time.Now().Before(end); {
		var err error
		results, err = l.PingAll(t.Context(), l.AllPairs(false), PingOptions{Interval: 10 * time.Millisecond, Timeout: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if !AnyLost(results) {
			return
		}
	}
	t.Errorf("not all pairs answer within %v: %+v", within, results)
}

func TestControllerThroughTheRelay(t *testing.T) {
	port := freePort(t)
	l := upForTest(t, linear(t, 3, 1), Options{Controllers: []string{"tcp:127.0.0.1:" + port}})
	wantPing(t, l, "h1", "h3", PingOptions{Timeout: 50 * time.Millisecond}, 0, 0) // secure, no controller yet
	c := startTestController(t, "ptcp:"+port+":127.0.0.1")
	wantAllPing(t, l, 8*time.Second)
	c.Process.Kill()
	c.Wait()
	startTestController(t, "ptcp:"+port+":127.0.0.1")
	if _, err := l.OfCtl(t.Context(), "s2", "del-flows"); err != nil {
		t.Fatal(err)
	}
	wantAllPing(t, l, 8*time.Second)
}

func TestControllerDirect(t *testing.T) {
	l := upForTest(t, linear(t, 2, 1), Options{Controllers: []string{ControllerDirect}})
	startTestController(t, "punix:"+l.ControllerSocket())
	wantAllPing(t, l, 8*time.Second)
}

func TestDownAfterTheKeeperWasKilled(t *testing.T) {
	topo := standalone(linear(t, 2, 1))
	topo.Links[0].Delay = Delay(time.Millisecond)
	l := upForTest(t, topo, Options{})
	sleeper, err := l.Start(context.Background(), "h1", "sh", "-c", "trap '' TERM; while :; do sleep 1; done")
	if err != nil {
		t.Fatal(err)
	}
	pids, err := newBelongs(l.Name()).processes()
	if err != nil || len(pids) < 4 { // ovsdb-server, ovs-vswitchd, keeper, sh
		t.Fatalf("processes %v, %v", pids, err)
	}
	killed := false
	for _, pid := range pids {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); strings.Contains(string(b), keeperEnv+"=") {
			killed = syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	}
	if !killed {
		t.Fatal("found no keeper")
	}
	for end := time.Now().Add(5 * time.Second); l.state.health() != "broken: keeper does not run"; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("without its keeper the lab is %q", l.state.health())
		}
	}
	if err := l.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := sleeper.Wait(); err == nil {
		t.Error("what ran in a host ended by itself")
	}
	wantNothing(t, l.Name())
}

// A maker killed at any moment leaves what Down can remove.
func TestDownOfHalfMadeLabs(t *testing.T) {
	for _, after := range []int{5, 20, 40, 80, 120, 160} {
		name := fmt.Sprintf("t%d-half-%d", os.Getpid(), after)
		cmd := exec.Command(os.Args[0], "-test.run=^TestMakerToBeKilled$")
		cmd.Env = append(os.Environ(), "WEFT_TEST_MAKER="+name)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(time.Millisecond) {
			if _, err := os.Stat(dirOf(name)); err == nil {
				break
			}
		}
		time.Sleep(time.Duration(after) * time.Millisecond)
		cmd.Process.Kill()
		cmd.Wait()
		if err := Down(t.Context(), name); err != nil {
			t.Errorf("killed after %d ms: %v", after, err)
		}
		wantNothing(t, name)
		if err := Down(t.Context(), name); err != nil {
			t.Errorf("down again: %v", err)
		}
	}
}

// TestMakerToBeKilled is the process TestDownOfHalfMadeLabs kills.
func TestMakerToBeKilled(t *testing.T) {
	name := os.Getenv("WEFT_TEST_MAKER")
	if name == "" {
		return
	}
	topo := linear(t, 10, 2)
	topo.Links[0].Delay = Delay(time.Millisecond)
	if _, err := Up(t.Context(), topo, Options{Name: name, KeeperCommand: keeperOfTest(t)}); err != nil {
		t.Fatal(err)
	}
}

func TestUpUndoesWhatItMadeWhenInterrupted(t *testing.T) {
	name := fmt.Sprintf("t%d-interrupted", os.Getpid())
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Up(ctx, linear(t, 5, 2), Options{Name: name, KeeperCommand: keeperOfTest(t), Progress: func(doing string) {
		if strings.HasPrefix(doing, "starting") {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	wantNothing(t, name)
}

func TestUpSaysWhyTheKeeperFailed(t *testing.T) {
	name := fmt.Sprintf("t%d-keeperless", os.Getpid())
	_, err := Up(t.Context(), linear(t, 1, 1), Options{Name: name, KeeperCommand: []string{"false"}})
	if err == nil || !strings.Contains(err.Error(), "start the keeper") {
		t.Errorf("got %v", err)
	}
	wantNothing(t, name)
	if _, err := Up(t.Context(), linear(t, 1, 1), Options{Name: name}); err == nil || !strings.Contains(err.Error(), "KeeperCommand is empty") {
		t.Errorf("got %v", err)
	}
}

func TestMissingToolNamesItsPackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Up(t.Context(), linear(t, 1, 1), Options{Name: "toolless", KeeperCommand: []string{"x"}})
	want := "ovsdb-tool, ovsdb-server, ovs-vswitchd, ovs-vsctl, ovs-ofctl, ovs-appctl not found in PATH: install with `apt-get install --no-install-recommends openvswitch-switch`"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := needTools("nft", "iperf3"); err == nil || !strings.Contains(err.Error(), "nftables iperf3") {
		t.Errorf("got %v", err)
	}
}

// A hundred switches and two hundred hosts come up in at most 30 s.
func TestLargeLab(t *testing.T) {
	topo, err := Random(100, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		topo.Hosts = append(topo.Hosts, Host{Name: fmt.Sprintf("x%d", i+1), Switch: topo.Switches[i].Name})
	}
	topo.Controllers = []string{ControllerNone}
	start := time.Now()
	l := upForTest(t, topo, Options{})
	took := time.Since(start)
	t.Logf("100 switches, 200 hosts, %d links: up in %v", len(topo.Links), took)
	if took > 30*time.Second {
		t.Errorf("up took %v, want at most 30 s", took)
	}
	for _, sw := range []string{"s1", "s50", "s100"} { // a host each on ports 1 and 2
		if _, err := l.OfCtl(t.Context(), sw, "add-flow", "actions=NORMAL"); err != nil {
			t.Fatal(err)
		}
		n := strings.TrimPrefix(sw, "s")
		wantPing(t, l, "h"+n, "x"+n, PingOptions{}, 3, 3)
	}
	start = time.Now()
	if err := l.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("down in %v", time.Since(start))
}

func BenchmarkUpDown100Switches200Hosts(b *testing.B) {
	topo := linear(b, 100, 2)
	topo.Controllers = []string{ControllerNone}
	for b.Loop() {
		l, err := Up(b.Context(), topo, Options{Name: fmt.Sprintf("b%d", os.Getpid()), KeeperCommand: keeperOfTest(b)})
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Down(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
