package qos

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testprogram"
	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/wefttest"
)

// TestLive: each key that a running service takes over has its effect.
func TestLive(t *testing.T) {
	change := func(t *testing.T, h *wefttest.Harness, f func(*Config)) {
		t.Helper()
		if err := wefttest.Reconfigure(h, f); err != nil {
			t.Fatal(err)
		}
	}
	set := func(h *wefttest.Harness, name string) error {
		_, err := wefttest.Call(h, api.QosSetPolicy, &api.QosSetPolicyRequest{Policy: &api.QosPolicy{Name: name, Class: &api.QosClass{Protocol: "tcp", DstPort: 80}, Limit: &api.QosLimit{RateKbps: 1}}})
		return err
	}
	// program returns a program that writes down what it is called with.
	program := func(t *testing.T) (path string, said func() string) {
		t.Helper()
		dir := t.TempDir()
		path = filepath.Join(dir, "vsctl")
		testprogram.Install(t, path, []byte("#!/bin/sh\necho \"$@\" >> "+dir+"/said\nexec sleep 0.5\n"))
		return path, func() string { b, _ := os.ReadFile(filepath.Join(dir, "said")); return string(b) }
	}
	queues := func(t *testing.T, h *wefttest.Harness, config string) {
		t.Helper()
		h.Configure("deadline: 100ms\n" + config)
		fakes(h)
		connect(h, sw1, "1.3", 254)
		h.Settle()
		if _, err := wefttest.Call(h, api.QosSetQueues, &api.QosSetQueuesRequest{Queues: &api.QosQueues{Dpid: sw1, Port: 1, Queues: []*api.QosQueue{{Id: 1, MaxKbps: 5}}}}); err != nil {
			t.Fatal(err)
		}
	}
	// said has a change bring about that the program is called with words.
	said := func(config string, f func(*Config), words ...string) func(*testing.T, *wefttest.Harness) {
		return func(t *testing.T, h *wefttest.Harness) {
			path, said := program(t)
			queues(t, h, strings.ReplaceAll(config, "PROGRAM", path))
			change(t, h, func(c *Config) {
				if f(c); !strings.HasPrefix(config, "vsctl:") {
					c.VSCtl = path
				}
			})
			for _, w := range words {
				testwait.Until(t, w, func() bool { return strings.Contains(said(), w) })
			}
		}
	}
	wefttest.Live(t, Spec(), map[string]func(*testing.T, *wefttest.Harness){
		"policies": func(t *testing.T, h *wefttest.Harness) {
			fakes(h)
			h.Start()
			change(t, h, func(c *Config) { c.Policies = 1 })
			if err := set(h, "a"); err != nil {
				t.Fatal(err)
			}
			if err := set(h, "b"); api.KindOf(err) != codes.ResourceExhausted {
				t.Errorf("a second policy: %v", err)
			}
		},
		"entries": func(t *testing.T, h *wefttest.Harness) {
			s := fakes(h)
			connect(h, sw1, "1.3", 254)
			h.Settle()
			if err := set(h, "a"); err != nil || len(s.of(sw1).GetFlows()) != 2 {
				t.Fatalf("%v; %v", err, s.of(sw1))
			}
			change(t, h, func(c *Config) { c.Entries = 1 })
			if err := set(h, "b"); api.KindOf(err) != codes.ResourceExhausted {
				t.Errorf("a policy beyond the entries: %v", err)
			}
			testwait.Until(t, "fewer entries", func() bool { return len(s.of(sw1).GetFlows()) < 2 })
		},
		"deadline": func(t *testing.T, h *wefttest.Harness) {
			h.Configure("deadline: 100ms")
			fakes(h)
			confirm := make(chan struct{})
			wefttest.Fake(h, api.SetStanding, func(ctx context.Context, _ *api.SetStandingRequest) (*api.SetStandingResponse, error) {
				select {
				case <-confirm:
					return &api.SetStandingResponse{}, nil
				case <-ctx.Done():
					return nil, api.Errorf(codes.Unavailable, "no answer")
				}
			})
			connect(h, sw1, "1.3", 254)
			change(t, h, func(c *Config) { c.Deadline = time.Minute })
			done := make(chan error, 1)
			go func() { done <- set(h, "a") }()
			select {
			case err := <-done:
				t.Errorf("it waits no longer than before: %v", err)
			case <-time.After(500 * time.Millisecond):
				close(confirm)
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
		},
		"ovsdb":          said("vsctl: PROGRAM", func(c *Config) { c.OVSDB = "unix:/x/{dpid}" }, "--db=unix:/x/"+sw1),
		"ovsdb_switches": said("vsctl: PROGRAM", func(c *Config) { c.OVSDBSwitches = map[string]string{sw1: "unix:/y"} }, "--db=unix:/y"),
		"vsctl":          said("ovsdb: unix:/x", func(*Config) {}, "--db=unix:/x"),
		"vsctl_options":  said("ovsdb: unix:/x", func(c *Config) { c.VSCtlOptions = []string{"--dry-run"} }, "--dry-run"),
		"vsctl_timeout": func(t *testing.T, h *wefttest.Harness) {
			path, _ := program(t)
			queues(t, h, "ovsdb: unix:/x\nvsctl: "+path)
			change(t, h, func(c *Config) { c.VSCtlTimeout = 100 * time.Millisecond })
			testwait.Until(t, "it takes too long", func() bool {
				list, err := wefttest.Call(h, api.QosListQueues, &api.QosListQueuesRequest{})
				return err == nil && len(list.Ports) == 1 && strings.Contains(list.Ports[0].Reason, "no answer within 100ms")
			})
		},
	})
}
