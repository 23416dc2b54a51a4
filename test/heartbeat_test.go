package test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/weft-sdn/weft/api"
)

// TestHeartbeat asks real switches ten times a second; a switch whose process is
// stopped is lost after three beats, and alive again when it goes on.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	for _, m := range modes {
		t.Run(m, func(t *testing.T) {
			c := start(t, options{plan: m, set: []string{"heartbeat.rate=10"}})
			l := up(t, "ring:4", c)
			settled(c, l)
			all := func(state string) func() bool {
				return func() bool {
					list := call(c, api.ListHeartbeats, &api.ListHeartbeatsRequest{}).Switches
					n := 0
					for _, s := range list {
						if s.State == state {
							n++
						}
					}
					return len(list) == 4 && n == 4
				}
			}
			eventually(t, "all switches alive", all("alive"))
			var list []*api.SwitchHeartbeat
			eventually(t, "ten beats of each switch", func() bool {
				list = call(c, api.ListHeartbeats, &api.ListHeartbeatsRequest{}).Switches
				return !slices.ContainsFunc(list, func(s *api.SwitchHeartbeat) bool { return s.Beats < 10 })
			})
			for _, s := range list {
				t.Logf("%v", s)
				if s.P50Us == 0 || s.P50Us > s.P99Us || s.P99Us > s.MaxUs {
					t.Errorf("%v", s)
				}
			}
			pid := vswitchd(t, l.Dir())
			tell(t, pid, syscall.SIGSTOP)
			eventually(t, "the stopped switches are lost", all("lost"))
			tell(t, pid, syscall.SIGCONT)
			eventually(t, "the switches are alive again", all("alive"))
			if c.metric("weft_heartbeat_missed_total") < 12 {
				t.Error("missed beats are not counted")
			}
			explain(c)
		})
	}
}

// vswitchd returns the process of a lab's switches.
func vswitchd(t *testing.T, dir string) int {
	t.Helper()
	out, err := os.ReadFile(filepath.Join(dir, "ovs-vswitchd.pid"))
	pid, bad := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || bad != nil {
		t.Fatalf("process of the switches in %s: %v, %v", dir, err, bad)
	}
	return pid
}

func tell(t *testing.T, pid int, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		t.Fatal(err)
	}
}
