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
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weft-sdn/weft/deploy/plans"
	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/lab"
	"github.com/weft-sdn/weft/lab/topology"
)

// TestScpKilled: the process with scp, in which everything else is or nothing
// else, is killed under load. Pairs that there are lose nothing, and discovery
// answers again, with the same end point.
func TestScpKilled(t *testing.T) {
	t.Parallel()
	for _, process := range []string{"all", "scp"} {
		t.Run(process, func(t *testing.T) { scpKilled(t, process) })
	}
}

func scpKilled(t *testing.T, process string) {
	name := fmt.Sprintf("t%d", time.Now().UnixNano()%1e9)
	text, err := plans.Read("5gc")
	if err != nil {
		t.Fatal(err)
	}
	plan := strings.Replace(string(text), "weft-5gc.scp", "weft-"+name+".scp", 1)
	if process == "scp" {
		plan = strings.Replace(plan, "paths, scp,", "paths,", 1)
		plan = strings.Replace(plan, "workers:\n", "workers:\n  scp: {services: [scp]}\n", 1)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(file, []byte(plan), 0o600); err != nil {
		t.Fatal(err)
	}
	listen, web := freeAddress(t), freeAddress(t)
	controller := exec.Command(testprogram.WithBench(t), "up", file, "--user", "root", "--data-dir", filepath.Join(dir, "data"), "--listen", listen, "--http", web)
	controller.Stderr = testWriter{t}
	if err := controller.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = controller.Process.Signal(syscall.SIGTERM); _ = controller.Wait() })
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
	eventually(t, "scp knows the core", func() bool {
		resp, err := http.Get("http://" + web + "/v1/scp")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		var s struct {
			Front     string
			Producers []struct{ State string }
		}
		return json.NewDecoder(resp.Body).Decode(&s) == nil && s.Front == "intercepting" && len(s.Producers) == 10
	})
	g := &core{l, t, nil}
	vip := g.endPoint("amf1", "AMF", "UDM")
	_, _, first := g.curl("amf1", "http://"+vip+subscriber)
	var asked, failed atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if status, body, by := g.curl("amf1", "http://"+vip+subscriber); status != 200 || by != first {
				failed.Add(1)
				t.Logf("a connection of the pair: status %d by %s: %s", status, by, body)
			}
			asked.Add(1)
		}
	}()
	for range 2 {
		killed(t, controller.Process.Pid, process)
		began := time.Now()
		if again := g.endPoint("amf2", "AMF", "UDM"); again != vip {
			t.Errorf("before %s, now %s", vip, again)
		}
		t.Logf("discovery answers %v after the kill", time.Since(began).Round(time.Millisecond))
		time.Sleep(2 * time.Second)
	}
	cancel()
	<-done
	if failed.Load() > 0 || asked.Load() < 10 {
		log, _ := os.ReadFile(filepath.Join(dir, "data", "workers", "all.log"))
		t.Logf("the balancer's log:\n%s", log)
		t.Errorf("of %d connections of an established pair %d failed, or came to another producer", asked.Load(), failed.Load())
	}
}

// killed kills the process of a plan that a supervisor has started, when it runs.
func killed(t *testing.T, supervisor int, process string) {
	t.Helper()
	eventually(t, "process "+process+" runs", func() bool {
		all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range all {
			line, _ := os.ReadFile(path) // it may have ended
			if !strings.Contains(string(line), "\x00worker\x00--process\x00"+process+"\x00") {
				continue
			}
			var pid, parent int
			_, _ = fmt.Sscanf(path, "/proc/%d/", &pid)
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			i := strings.LastIndexByte(string(stat), ')')
			if i < 0 {
				continue
			}
			var state string
			_, _ = fmt.Sscan(string(stat[i+1:]), &state, &parent)
			if parent == supervisor && syscall.Kill(pid, syscall.SIGKILL) == nil {
				return true
			}
		}
		return false
	})
}
