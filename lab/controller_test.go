package lab

import (
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weft-sdn/weft/internal/freeport"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab/nodes"
	"github.com/weft-sdn/weft/lab/topology"
	"github.com/weft-sdn/weft/lab/traffic"
)

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
	address, err := freeport.Loopback()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	return port
}

// wantAllPing waits until every pair answers, as a controller needs time to
// hear of its switches.
func wantAllPing(t testing.TB, l *Lab) {
	t.Helper()
	var results []traffic.PingResult
	for end := time.Now().Add(testwait.Limit); time.Now().Before(end); {
		var err error
		results, err = l.PingAll(t.Context(), l.AllPairs(false), traffic.PingOptions{Interval: 10 * time.Millisecond, Timeout: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if !traffic.AnyLost(results) {
			return
		}
	}
	t.Errorf("not all pairs answer within %v: %+v", testwait.Limit, results)
}

func TestControllerThroughTheRelay(t *testing.T) {
	t.Parallel()
	port := freePort(t)
	l := upForTest(t, linear(t, 3, 1), Options{Controllers: []string{"tcp:127.0.0.1:" + port}})
	wantPing(t, l, "h1", "h3", traffic.PingOptions{Timeout: 50 * time.Millisecond}, 0, 0) // secure, no controller yet
	want := func(is nodes.Session) {
		t.Helper()
		is.Controller = "tcp:127.0.0.1:" + port
		var got map[string][]nodes.Session
		for end := time.Now().Add(testwait.Limit); time.Now().Before(end); time.Sleep(200 * time.Millisecond) { // Open vSwitch tells every 5 s
			var err error
			if got, err = l.Sessions(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(got) == 3 && slices.Equal(got["s1"], []nodes.Session{is}) {
				return
			}
		}
		t.Errorf("sessions are %v, want %v of s1", got, is)
	}
	want(nodes.Session{})
	c := startTestController(t, "ptcp:"+port+":127.0.0.1")
	wantAllPing(t, l)
	want(nodes.Session{Connected: true, Role: "equal"})
	c.Process.Kill()
	c.Wait()
	startTestController(t, "ptcp:"+port+":127.0.0.1")
	if _, err := l.OfCtl(t.Context(), "s2", "del-flows"); err != nil {
		t.Fatal(err)
	}
	wantAllPing(t, l)
}

func TestControllerDirect(t *testing.T) {
	t.Parallel()
	l := upForTest(t, linear(t, 2, 1), Options{Controllers: []string{topology.ControllerDirect}})
	startTestController(t, "punix:"+l.ControllerSocket())
	wantAllPing(t, l)
}
