package deploy_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy"
)

// TestReadWorkerLog reads the logs of this process, of another, and of one that
// has died, which another process of its machine has.
func TestReadWorkerLog(t *testing.T) {
	c := newCluster(t, callers(), map[string]func(*actor){"hosts": findHost})
	type logs func(reader, process string, lines int) ([]string, error)
	var now atomic.Pointer[logs]
	set := func(f logs) { now.Store(&f) }
	set(func(reader, process string, lines int) ([]string, error) {
		list := []string{"time=2026-01-02T03:04:05.678Z level=INFO msg=begins", fmt.Sprintf("of %s, read by %s, %d lines", process, reader, lines)}
		for range 3 {
			list = append(list, strings.Repeat("x", 400<<10))
		}
		return append(list, "time=nonsense panic: \xff"), nil
	})
	c.apply("{name: a, events: grpc, workers: {a: {services: [hosts]}, b: {services: [gateway]}}}")
	for _, name := range []string{"a", "b"} {
		c.start(name, func(config *deploy.NodeConfig) {
			config.Logs = func(process string, lines int) ([]string, error) { return (*now.Load())(name, process, lines) }
		})
	}
	c.startAll()
	node := c.process("b").node
	for _, worker := range []string{"a", "b"} {
		m, err := node.ReadWorkerLog(t.Context(), &api.ReadWorkerLogRequest{Worker: worker})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(m.Lines); n != 3 || m.Lines[n-1].Text != "time=nonsense panic: \uFFFD" || m.Lines[n-1].Time != "" {
			t.Errorf("%d lines of %s; want the last, of at most a megabyte", n, worker)
		}
	}
	set(func(reader, process string, lines int) ([]string, error) {
		return []string{"time=2026-01-02T03:04:05.678Z level=INFO msg=begins", fmt.Sprintf("of %s, read by %s, %d lines", process, reader, lines)}, nil
	})
	for worker, want := range map[string]string{"a": "of a, read by a, 10 lines", "b": "of b, read by b, 10 lines"} {
		m, err := node.ReadWorkerLog(t.Context(), &api.ReadWorkerLogRequest{Worker: worker, Lines: 10})
		if err != nil || len(m.Lines) != 2 || m.Lines[0].Time != "2026-01-02T03:04:05.678Z" || m.Lines[0].Text != "level=INFO msg=begins" || m.Lines[1].Text != want {
			t.Errorf("%s: %v, %v", worker, m, err)
		}
	}
	c.kill(c.process("a"))
	if m, err := node.ReadWorkerLog(t.Context(), &api.ReadWorkerLogRequest{Worker: "a"}); err != nil || m.Lines[1].Text != "of a, read by b, 200 lines" {
		t.Errorf("after its death: %v, %v", m, err)
	}
	for worker, want := range map[string]codes.Code{"nobody": codes.NotFound, "../a": codes.NotFound, "": codes.NotFound} {
		if _, err := node.ReadWorkerLog(t.Context(), &api.ReadWorkerLogRequest{Worker: worker}); api.KindOf(err) != want {
			t.Errorf("%q: %v", worker, err)
		}
	}
	if _, err := node.ReadWorkerLog(t.Context(), &api.ReadWorkerLogRequest{Worker: "b", Lines: 1001}); api.KindOf(err) != codes.InvalidArgument {
		t.Errorf("1,001 lines: %v", err)
	}
	set(func(string, string, int) ([]string, error) { return nil, errors.New("none") })
	if _, err := node.ReadWorkerLog(t.Context(), &api.ReadWorkerLogRequest{Worker: "a"}); api.KindOf(err) != codes.Unavailable {
		t.Errorf("nobody has it: %v", err)
	}
}
