//go:build long

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/deploy/plans"
	"github.com/weft-sdn/weft/flow"
	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"
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
	name := fmt.Sprintf("t%d", time.Now().UnixNano()%1e9)
	text, err := plans.Read("5gc")
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Replace(string(text), "weft-5gc.scp", "weft-"+name+".scp", 1)
	if front == "packet-in" {
		var kept []string
		for line := range strings.SplitSeq(plan, "\n") {
			if key := strings.TrimSpace(line); !strings.HasPrefix(key, "listen: 10.0.0.2") && !strings.HasPrefix(key, "namespace:") {
				kept = append(kept, line)
			}
		}
		plan = strings.Join(kept, "\n")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(file, []byte(plan), 0o600); err != nil {
		t.Fatal(err)
	}
	listen, web := freeAddress(t), freeAddress(t)
	up := func() *exec.Cmd {
		c := exec.Command(testprogram.WithBench(t), "up", file, "--user", "root", "--data-dir", filepath.Join(dir, "data"), "--listen", listen, "--http", web)
		c.Stderr = testWriter{t}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Signal(syscall.SIGTERM); _ = c.Wait() })
		return c
	}
	controller := up()
	topo, err := topology.Core5G(2)
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Up(context.Background(), topo, lab.Options{
		Name: name, Temporary: true, Controllers: []string{"tcp:" + listen}, KeeperCommand: []string{os.Args[0]}, Weft: testprogram.WithBench(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Down(context.Background()); err != nil {
			t.Error(err)
		}
	})
	intercepts := func() bool {
		resp, err := http.Get("http://" + web + "/v1/scp")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		var s struct {
			Front     string
			FrontBy   string `json:"front_by"`
			Producers []struct{ State string }
		}
		return json.NewDecoder(resp.Body).Decode(&s) == nil && s.Front == "intercepting" && s.FrontBy == front && len(s.Producers) == 10
	}
	eventually(t, "scp knows the core", intercepts)
	g := &core{l, t, nil}
	vip := ""
	eventually(t, "the front answers", func() bool {
		vip = g.endPoint("amf1", "AMF", "UDM")
		return strings.HasPrefix(vip, "10.0.255.")
	})
	const discovery = "http://10.0.0.1:7777/nnrf-disc/v1/nf-instances?target-nf-type=UDM&requester-nf-type="
	uses := func(when string) {
		t.Helper()
		if status, body, _ := g.curl("amf1", "http://"+vip+subscriber); status != 200 {
			t.Errorf("%s, the end point answers %d %s", when, status, body)
		}
	}
	uses("at first")
	// asks has a host discover until the answer has end points, or producers.
	asks := func(host, as string, endPoints bool) {
		t.Helper()
		eventually(t, "discovery", func() bool {
			status, body, _ := g.curl(host, discovery+as, "-m", "1")
			return status == 200 && strings.Contains(body, `"UDM"`) && strings.Contains(body, "10.0.255.") == endPoints
		})
	}
	asks("pcf1", "PCF", true)
	for _, host := range []string{"amf1", "pcf1"} {
		mac := flow.MAC(lookup(t, l, host).MAC).String()
		eventually(t, host+" has its way to the NRF", func() bool {
			there, back := false, false
			for _, sw := range topo.Switches {
				out, err := l.OfCtl(context.Background(), sw.Name, "dump-flows", "cookie=0x5745120000000000/0xffffff0000000000")
				for line := range strings.SplitSeq(out, "\n") {
					way := err == nil && strings.Contains(line, fmt.Sprintf("priority=%d,", flow.PriorityNRFWay))
					there, back = there || way && strings.Contains(line, "dl_src="+mac), back || way && strings.Contains(line, "dl_dst="+mac)
				}
			}
			return there && back
		})
	}
	killAll(t, controller)
	began := time.Now()
	asks("amf1", "AMF", false)
	t.Logf("%s: the NRF answers %v after the kill", front, time.Since(began).Round(time.Millisecond))
	asks("pcf1", "PCF", false)
	uses("without a controller")
	up()
	began = time.Now()
	eventually(t, "scp is back", intercepts)
	asks("amf1", "AMF", true)
	t.Logf("%s: the front answers %v after the start", front, time.Since(began).Round(time.Millisecond))
	asks("pcf1", "PCF", true)
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
