package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/lab/traffic"
)

func TestDownAfterTheKeeperWasKilled(t *testing.T) {
	t.Parallel()
	topo := standalone(linear(t, 2, 1))
	topo.Links[0].Delay = topology.Delay(time.Millisecond)
	l := upForTest(t, topo, Options{})
	sleeper, err := l.Start(context.Background(), "h1", "sh", "-c", "trap '' TERM; while :; do sleep 1; done")
	if err != nil {
		t.Fatal(err)
	}
	pids, err := machine.MembersOf(l.Name()).Processes()
	if err != nil || len(pids) < 4 { // ovsdb-server, ovs-vswitchd, keeper, sh
		t.Fatalf("processes %v, %v", pids, err)
	}
	killed := false
	for _, pid := range pids {
		if b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); strings.Contains(string(b), machine.KeeperEnv+"=") {
			killed = syscall.Kill(pid, syscall.SIGKILL) == nil
		}
	}
	if !killed {
		t.Fatal("found no keeper")
	}
	for end := time.Now().Add(testwait.Limit); health(l.state) != "broken: keeper does not run"; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("without its keeper the lab is %q", health(l.state))
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
	t.Parallel()
	for _, after := range []int{5, 20, 40, 80, 120, 160, 240, 400, 1200} {
		name := fmt.Sprintf("t%d-half-%d", os.Getpid(), after)
		cmd := exec.Command(os.Args[0], "-test.run=^TestMakerToBeKilled$")
		cmd.Env = append(os.Environ(), "WEFT_TEST_MAKER="+name)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(time.Millisecond) {
			if _, err := os.Stat(machine.Dir(name)); err == nil {
				break
			}
		}
		time.Sleep(time.Duration(after) * time.Millisecond)
		cmd.Process.Kill()
		cmd.Wait()
		if err := Down(t.Context(), name); err != nil {
			t.Errorf("killed after %d ms: %v", after, err)
		}
		// What the maker had just begun ends by itself.
		for end := time.Now().Add(testwait.Limit); processLeft(t, name) != "" && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
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
	topo.Links[0].Delay = topology.Delay(time.Millisecond)
	for i := range topo.Hosts {
		topo.Hosts[i].Manage, topo.Hosts[i].Run = true, []topology.Program{{Command: `sh -c 'trap "" TERM; while :; do sleep 1; done'`}}
	}
	if _, err := Up(t.Context(), topo, Options{Name: name, Temporary: os.Getenv("WEFT_TEST_LASTING") == "no", KeeperCommand: keeperOfTest(t)}); err != nil {
		t.Fatal(err)
	}
}

func TestUpUndoesWhatItMadeWhenInterrupted(t *testing.T) {
	t.Parallel()
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
	want := "ovsdb-tool, ovsdb-server, ovs-vswitchd, ovs-vsctl, ovs-ofctl, ovs-appctl, prlimit not found in PATH: install with `apt-get install --no-install-recommends openvswitch-switch util-linux`"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := machine.NeedTools("nft", "iperf3"); err == nil || !strings.Contains(err.Error(), "nftables iperf3") {
		t.Errorf("got %v", err)
	}
}

// A hundred switches and two hundred hosts come up.
func TestLargeLab(t *testing.T) {
	topo, err := topology.Random(100, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		topo.Hosts = append(topo.Hosts, topology.Host{Name: fmt.Sprintf("x%d", i+1), Switch: topo.Switches[i].Name})
	}
	topo.Controllers = []string{topology.ControllerNone}
	start := time.Now()
	l := upForTest(t, topo, Options{})
	t.Logf("100 switches, 200 hosts, %d links: up in %v", len(topo.Links), time.Since(start))
	for _, sw := range []string{"s1", "s50", "s100"} { // a host each on ports 1 and 2
		if _, err := l.OfCtl(t.Context(), sw, "add-flow", "actions=NORMAL"); err != nil {
			t.Fatal(err)
		}
		n := strings.TrimPrefix(sw, "s")
		wantPing(t, l, "h"+n, "x"+n, traffic.PingOptions{}, 3, 3)
	}
	start = time.Now()
	if err := l.Down(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("down in %v", time.Since(start))
}

func BenchmarkUpDown100Switches200Hosts(b *testing.B) {
	topo := linear(b, 100, 2)
	topo.Controllers = []string{topology.ControllerNone}
	var up, down time.Duration
	for b.Loop() {
		start := time.Now()
		l, err := Up(b.Context(), topo, Options{Name: fmt.Sprintf("b%d", os.Getpid()), KeeperCommand: keeperOfTest(b)})
		if err != nil {
			b.Fatal(err)
		}
		up += time.Since(start)
		start = time.Now()
		if err := l.Down(b.Context()); err != nil {
			b.Fatal(err)
		}
		down += time.Since(start)
	}
	b.ReportMetric(up.Seconds()/float64(b.N), "s-up")
	b.ReportMetric(down.Seconds()/float64(b.N), "s-down")
}

// A lab made below `ip netns exec`, which has mounts of its own, is a lab for
// everybody, and leaves nothing.
func TestUpAmongOtherMounts(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		name string
		wrap []string
		up   bool
	}{
		{"copies", []string{"unshare", "--mount", "--propagation", "slave"}, true},
		{"private", []string{"unshare", "--mount"}, false},
	} {
		t.Run(v.name, func(t *testing.T) {
			name := fmt.Sprintf("t%d-mounts-%s", os.Getpid(), v.name)
			t.Cleanup(func() {
				if err := Down(context.Background(), name); err != nil {
					t.Error(err)
				}
				wantNothing(t, name)
			})
			cmd := exec.CommandContext(t.Context(), v.wrap[0], append(v.wrap[1:], os.Args[0], "-test.run=^TestMakerToBeKilled$")...)
			cmd.Env = append(os.Environ(), "WEFT_TEST_MAKER="+name)
			out, err := cmd.CombinedOutput()
			if !v.up {
				if err == nil || !strings.Contains(string(out), "mount namespace of its own") {
					t.Errorf("got %v:\n%s", err, out)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			l, err := Open(name)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := l.Exec(t.Context(), "h1", "ip", "-br", "addr", "show", "eth0"); err != nil || !strings.Contains(out, "10.0.0.1/24") {
				t.Errorf("h1: %v: %s", err, out)
			}
		})
	}
}
