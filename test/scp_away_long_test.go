//go:build long

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestScpWithoutController: all processes of the controller are killed. Discoveries
// reach the NRF by themselves, established pairs go on, and when the controller is back, the
// front answers again.
func TestScpWithoutController(t *testing.T) {
	for _, front := range []string{"host", "packet-in"} {
		t.Run(front, func(t *testing.T) { scpAway(t, front) })
	}
}

func scpAway(t *testing.T, front string) {
	g, controller := startCore(t, front)
	vip := ""
	eventually(t, "the front answers", func() bool {
		vip = g.endPoint("amf1", "AMF", "UDM")
		return strings.HasPrefix(vip, "10.0.255.")
	})
	uses := func(when string) {
		t.Helper()
		if status, body, _ := g.curl("amf1", "http://"+vip+subscriber); status != 200 {
			t.Errorf("%s, the end point answers %d %s", when, status, body)
		}
	}
	uses("at first")
	g.asks("pcf1", "PCF", true)
	g.hasWay("amf1")
	g.hasWay("pcf1")
	killAll(t, controller)
	began := time.Now()
	g.asks("amf1", "AMF", false)
	t.Logf("%s: the NRF answers %v after the kill", front, time.Since(began).Round(time.Millisecond))
	g.asks("pcf1", "PCF", false)
	uses("without a controller")
	g.up()
	began = time.Now()
	eventually(t, "scp is back", g.intercepts)
	g.asks("amf1", "AMF", true)
	t.Logf("%s: the front answers %v after the start", front, time.Since(began).Round(time.Millisecond))
	g.asks("pcf1", "PCF", true)
	uses("with a controller again")
}

// killAll kills a supervisor and its processes at once.
func killAll(t *testing.T, supervisor *exec.Cmd) {
	t.Helper()
	var children []int
	all, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range all {
		stat, _ := os.ReadFile(path) // it may have ended
		i := strings.LastIndexByte(string(stat), ')')
		if i < 0 {
			continue
		}
		var state string
		var pid, parent int
		_, _ = fmt.Sscanf(path, "/proc/%d/", &pid)
		if _, _ = fmt.Sscan(string(stat[i+1:]), &state, &parent); parent == supervisor.Process.Pid {
			children = append(children, pid)
		}
	}
	_ = supervisor.Process.Kill()
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = supervisor.Wait()
}
