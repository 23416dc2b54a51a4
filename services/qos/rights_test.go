package qos

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/internal/testprogram"
)

// TestRights: root runs the program of its own configuration, on the database of
// its own configuration, whatever it is asked.
func TestRights(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "vsctl")
	testprogram.Install(t, program, []byte("#!/bin/sh\necho \"$@\" >> "+dir+"/said\necho br1\n"))
	cfg := DefaultConfig()
	cfg.VSCtl, cfg.OVSDBSwitches = program, map[string]string{"1": "unix:/run/db.sock", "2": "unix:/run/{address}.sock", "4": "tcp:{address}:6640"}
	ask := func(m *api.QosQueues, name, address string) error {
		queues, err := json.Marshal(map[string]any{"dpid": m.Dpid, "port": m.Port, "state": m.State, "queues": []any{map[string]any{"id": 1, "max_kbps": 5}}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(map[string]any{"queues": json.RawMessage(queues), "name": name, "address": address})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Rights(cfg, "")[verbQueues](context.Background(), text)
		return err
	}
	for _, c := range []struct {
		m             *api.QosQueues
		name, address string
		want          string
	}{
		{&api.QosQueues{Dpid: "3", Port: 1}, "p1", "10.0.0.1", "knows no database of switch 0000000000000003"},
		{&api.QosQueues{Dpid: "x", Port: 1}, "p1", "", "x"},
		{&api.QosQueues{Dpid: "1", Port: 0}, "p1", "", "port 0"},
		{&api.QosQueues{Dpid: "1", Port: 1}, "--db=tcp:10.0.0.1:1", "", "cannot be passed on"},
		{&api.QosQueues{Dpid: "1", Port: 1, State: removing}, "p1;reboot", "", "cannot be passed on"},
		{&api.QosQueues{Dpid: "2", Port: 1}, "p1", "../../etc/x", "ParseAddr"},
		{&api.QosQueues{Dpid: "4", Port: 1}, "p1", "10.0.0.1,unix:/run/other.sock", "ParseAddr"},
	} {
		if err := ask(c.m, c.name, c.address); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v %s: %v; want %s", c.m, c.name, err, c.want)
		}
	}
	if said, err := os.ReadFile(filepath.Join(dir, "said")); err == nil {
		t.Errorf("the program was run: %s", said)
	}
	for _, c := range []struct{ dpid, address, want string }{
		{"1", "", "--db=unix:/run/db.sock "}, {"2", "", "--db=unix:/run/unknown.sock "}, {"2", "10.0.0.1", "--db=unix:/run/10.0.0.1.sock "},
		{"4", "::1%x,unix:/run/other.sock,tcp:127.0.0.1:6640", "--db=tcp:[::1]:6640 "}, {"4", "::ffff:10.0.0.1", "--db=tcp:10.0.0.1:6640 "}, {"4", "fe80::1%eth0", "--db=tcp:[fe80::1]:6640 "},
	} {
		if err := ask(&api.QosQueues{Dpid: c.dpid, Port: 1}, "p1", c.address); err == nil { // br1 is no switch of that number
			t.Errorf("switch %s: done", c.dpid)
		}
		said, err := os.ReadFile(filepath.Join(dir, "said"))
		if err != nil || !strings.HasPrefix(string(said), c.want) {
			t.Errorf("switch %s at %s: %s, %v; want %s", c.dpid, c.address, said, err, c.want)
		}
		os.Remove(filepath.Join(dir, "said"))
	}
	if _, err := Rights(cfg, "")[verbQueues](context.Background(), json.RawMessage(`{"queues": {"vsctl": "/bin/sh"}}`)); err == nil {
		t.Error("a program is named")
	}
}
